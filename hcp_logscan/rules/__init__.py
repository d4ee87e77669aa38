"""Rules: one YAML file each, judged over fact tables. Reads nothing but YAML."""
