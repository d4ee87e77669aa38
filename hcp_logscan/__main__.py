"""`python -m hcp_logscan`."""

from hcp_logscan.cli.app import main

if __name__ == "__main__":
    main()
