"""FACTS: the columns of the fact tables that rules are written over.

A fact is what a run amounts to. Null means "not observed", and a rule that needs it is then
inconclusive; so a fact is False or 0 only where something in the logs says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import polars as pl

from hcp_logscan.analysis.baseline_facts import BASELINE_FACTS
from hcp_logscan.analysis.fact import Fact

if TYPE_CHECKING:
    from collections.abc import Mapping


_DUMP = "keep rank 0's start-up output: the whole argument dump or configuration summary"
_LAST = "keep the last rank's output: it prints the iteration lines"
_GPU = "print nvidia-smi -L in the job script, or pass --gpu"
_THROUGHPUT = "--log-throughput"
_STRAGGLERS = "--log-straggler, or NVRx's straggler detection"
_DUMPS = "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000 and keep the flight-recorder dumps of all ranks"
_INT, _STR, _BOOL, _FLOAT = pl.Int64(), pl.String(), pl.Boolean(), pl.Float64()
_INTS, _STRS = pl.List(pl.Int64()), pl.List(pl.String())

CONFIG_FACTS: Final[Mapping[str, Fact]] = {
    "cp_size": Fact(_INT, "context parallel size", _DUMP),
    "cp_comm_type": Fact(
        _STR,
        "cp_comm_type in effect; per-layer lists joined by commas without repeats; "
        "`p2p` where a complete block leaves it at its default",
        _DUMP,
    ),
    "cp_implementation": Fact(
        _STR,
        "context parallelism that is not Megatron-Core's and has no hierarchy, by its name:"
        " `MindSpeed ulysses_cp_algo`, `torch device mesh` (torchtitan)",
        _DUMP,
    ),
    "hcp_sizes": Fact(_INTS, "hierarchical_context_parallel_sizes, inner level first", _DUMP),
    "hcp_sizes_set": Fact(
        _BOOL,
        "sizes were given; FALSE only where a complete block or a start-up line says none",
        _DUMP,
    ),
    "hcp_sizes_product": Fact(_INT, "product of the sizes", _DUMP),
    "hcp_levels": Fact(_INT, "number of levels in the sizes", _DUMP),
    "hcp_min_size": Fact(_INT, "smallest of the sizes", _DUMP),
    "hcp_a2a_size": Fact(_INT, "first of the sizes: the inner, all-to-all level L0", _DUMP),
    "seq_length": Fact(_INT, "sequence length in tokens", _DUMP),
    "tp_size": Fact(_INT, "tensor model parallel size", _DUMP),
    "pp_size": Fact(_INT, "pipeline model parallel size", _DUMP),
    "dp_size": Fact(_INT, "data parallel size", _DUMP),
    "ep_size": Fact(_INT, "expert model parallel size", _DUMP),
    "world_size": Fact(
        _INT,
        "number of ranks, as a configuration, the launcher or the user says it, else as proven by"
        " the logs (world_size_source)",
        _DUMP + ", or pass --world-size",
    ),
    "num_layers": Fact(_INT, "transformer layers", _DUMP),
    "hidden_size": Fact(_INT, "hidden size", _DUMP),
    "ffn_hidden_size": Fact(_INT, "feed-forward hidden size", _DUMP),
    "num_attention_heads": Fact(_INT, "attention heads", _DUMP),
    "query_groups": Fact(
        _INT, "key/value heads: num_attention_heads unless group_query_attention is on", _DUMP
    ),
    "kv_channels": Fact(_INT, "channels per head", _DUMP),
    "micro_batch_size": Fact(_INT, "micro batch size in sequences", _DUMP),
    "global_batch_size": Fact(_INT, "global batch size in sequences", _DUMP),
    "train_iters": Fact(
        _INT, "planned iterations, from the configuration or the iteration lines", _DUMP
    ),
    "log_interval": Fact(_INT, "iterations between two iteration lines", _DUMP),
    "num_workers": Fact(_INT, "dataloader workers of each rank; 0 loads in the rank itself", _DUMP),
    "transformer_impl": Fact(_STR, "`transformer_engine` or `local`", _DUMP),
    "hybrid_context_parallel": Fact(
        _BOOL, "hybrid (dynamic) context parallel is on: another feature, not HCP", _DUMP
    ),
    "use_decentralized_pg": Fact(
        _BOOL, "dist.use_decentralized_pg", "keep the saved run configuration beside the logs"
    ),
    "te_version": Fact(
        _STR, "Transformer Engine version; 0.0.0 (not installed) counts as unknown", _DUMP
    ),
    "mcore_version": Fact(_STR, "Megatron-Core version", _DUMP),
    "torch_version": Fact(_STR, "PyTorch version", _DUMP),
    "precision": Fact(_STR, "`bf16`, `fp16`, `fp8`, `fp4` or `fp32`", _DUMP),
}
"""What was configured. These also stand under `config` in the JSON report."""

ATTEMPT_FACTS: Final[Mapping[str, Fact]] = {
    "attempt": Fact(_INT, "number of the attempt, from 0"),
    **CONFIG_FACTS,
    "framework": Fact(_STR, "the trainer, such as `megatron-bridge`, by the shape of its lines"),
    "world_size_source": Fact(
        _STR,
        "who says how many ranks there are, or what proves it, in words: `the argument dump`, `the"
        " launcher`, `the product of the parallel sizes`, `c10d's first process group`, `the rank"
        " that prints the iterations, which is the last one`, ...",
    ),
    "te_version_code": Fact(
        _INT, "te_version as major*1000000 + minor*1000 + patch (1.12.0 is 1012000)", _DUMP
    ),
    "config_complete": Fact(
        _BOOL,
        "a configuration block was read to its end; FALSE if one began and was cut off",
        _DUMP,
    ),
    "config_conflicts": Fact(
        _STRS, "keys that two sources of this attempt give different values; empty if none", _DUMP
    ),
    "decentralized_pg": Fact(
        _BOOL,
        "process groups were built by HyperCommGrid (TRUE) or by the MPU path (FALSE)",
        "keep rank 0's start-up output (`> initialized …`) or the saved run configuration",
    ),
    "saved_config_requests_hcp": Fact(
        _BOOL,
        "a configuration saved beside the logs asks for a2a+p2p with sizes",
        "keep the saved run configuration (run_config.yaml) beside the logs",
    ),
    "verdict_status": Fact(_STR, "status of the verdict of this attempt; never null"),
    "hierarchical_groups_seen": Fact(
        _BOOL,
        "creation or opening of hierarchical groups was logged; FALSE only where other groups were"
        " logged with descriptions (or by hand), steps finished, and nothing was deduplicated",
        "set TORCH_CPP_LOG_LEVEL=INFO on every rank (torch >= 2.4, Megatron-Core >= 0.11)",
    ),
    "te_off_seen": Fact(
        _BOOL,
        "Transformer Engine said that a training layer which asks for a2a+p2p ran without context"
        " parallelism; FALSE where its training entries say otherwise",
        "set NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 on every rank",
    ),
    "te_off_ranks": Fact(_INTS, "ranks that said so"),
    "ranks_disagree": Fact(
        _BOOL,
        "ranks, levels or layers disagree about hierarchical CP; null without runtime evidence",
        "set NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2 TORCH_CPP_LOG_LEVEL=INFO on every rank",
    ),
    "disagreeing_ranks": Fact(_INTS, "ranks whose evidence says inactive while others are active"),
    "packed_sequences": Fact(
        _BOOL,
        "attention ran on packed sequences (qkv_layout thd)",
        "set NVTE_DEBUG=1 NVTE_DEBUG_LEVEL=2",
    ),
    "sequences_vary": Fact(
        _BOOL,
        "sequences are packed or of several lengths, by the configuration or Transformer Engine's"
        " layouts: tokens/s are then not computed from the batch",
        _DUMP,
    ),
    "data_seq_length": Fact(
        _INT, "sequence length that the configuration gives the data set, apart from the model's"
    ),
    "training_announced": Fact(
        _BOOL, "the trainer said that training starts; FALSE if rank 0's log lacks it", _LAST
    ),
    "training_done": Fact(_BOOL, "the trainer said that training is done"),
    "planned_exit": Fact(_BOOL, "the trainer left the loop on purpose (time, signal, interval)"),
    "iterations_finished": Fact(_INT, "distinct iterations the logs show as finished; 0 if none"),
    "first_iteration": Fact(_INT, "first iteration number printed", _LAST),
    "last_iteration": Fact(_INT, "last iteration number printed", _LAST),
    "last_rank_logged": Fact(
        _BOOL, "the logs of the rank that prints iteration lines are there", _LAST
    ),
    "resumed_from": Fact(_INT, "iteration of the checkpoint that was loaded"),
    "last_saved": Fact(_INT, "iteration of the last checkpoint that was saved"),
    "iterations_gained": Fact(
        _INT, "iterations from the checkpoint it resumed from, or from 0, to the last one logged"
    ),
    "iterations_lost": Fact(
        _INT,
        "iterations behind the last checkpoint of an attempt that did not come to its own end; null"
        " where rank 0, which says that checkpoints were saved, was not logged",
        "keep rank 0's output to its end",
    ),
    "lost_s": Fact(_FLOAT, "iterations_lost times the median step, seconds"),
    "skipped_iterations": Fact(_INT, "sum of `number of skipped iterations`", _LAST),
    "nan_iterations": Fact(_INT, "sum of `number of nan iterations`", _LAST),
    "loss_scaled": Fact(
        _BOOL, "a loss scale other than 1 was printed (fp16 dynamic loss scaling)", _LAST
    ),
    "late_skipped_share": Fact(
        _FLOAT,
        "share of skipped iterations once the loss scale search of the start is over, 0 to 1",
        _LAST,
    ),
    "memory_max_allocated": Fact(
        _FLOAT,
        "most GPU memory that a rank's allocator had held when it printed its memory line, after"
        " the first iterations",
        "keep the output of the ranks that print `memory (MB)` or `memory (GB)`",
    ),
    "memory_unit": Fact(_STR, "unit of memory_max_allocated as printed: `MB` or `GB`"),
    "rejections": Fact(_INT, "ranks that ended in a start-up check of the configuration"),
    "rejection_check": Fact(_STR, "which check refused the configuration"),
    "rejection_text": Fact(_STR, "what the check said"),
    "root_exceptions": Fact(
        _INT, "ranks with an uncaught Python exception that is no echo of another rank's end"
    ),
    "exception_type": Fact(_STR, "type of the first uncaught exception that is no echo"),
    "exception_message": Fact(_STR, "its message"),
    "exception_rank": Fact(_INT, "the rank that raised it first"),
    "gpu": Fact(_STR, "GPU of the job: its name in the GPU table, else as the logs print it", _GPU),
    "peak_tflops": Fact(
        _FLOAT,
        "dense peak of this GPU at this precision, TFLOP/s; null unless both are known",
        _GPU + "; the precision stands in the configuration, or pass --precision",
    ),
    "peak_bound_tflops": Fact(
        _FLOAT,
        "the most that any GPU it may be does at any precision it may run, TFLOP/s without"
        " sparsity",
        _GPU,
    ),
    "peak_bound_of": Fact(_STR, "what peak_bound_tflops is the peak of, in words", _GPU),
    "tflops_median": Fact(
        _FLOAT, "median of the printed model TFLOP/s/GPU over all logged iterations", _THROUGHPUT
    ),
    "peak_share": Fact(_FLOAT, "tflops_median over peak_tflops, 0 to 1 where believable", _GPU),
    "attention_flops_share": Fact(
        _FLOAT,
        "share of the attention core in the counted FLOPs; null where the model shape is not"
        " understood",
        _DUMP,
    ),
    "cp_off_inflation": Fact(
        _FLOAT,
        "how many times too high a rate is printed if context parallelism is off: all counted FLOPs"
        " over those with the attention core divided by the CP size",
        _DUMP,
    ),
    "tflops_if_cp_off": Fact(
        _FLOAT, "tflops_median over cp_off_inflation: what was done if it was off", _DUMP
    ),
    "peak_share_if_cp_off": Fact(_FLOAT, "tflops_if_cp_off over peak_tflops", _DUMP + "; " + _GPU),
    "formula_tflops": Fact(
        _FLOAT,
        "TFLOP/s/GPU that step time, batch and model shape give by Megatron's formula, in the"
        " version that fits best; null where the shape is not understood, or counted"
        " differently by versions that the logs do not tell apart",
        _DUMP + "; " + _THROUGHPUT,
    ),
    "formula_error": Fact(
        _FLOAT, "how far the printed rate is from it, as a share of it", _DUMP + "; " + _THROUGHPUT
    ),
    "rate_explained_by": Fact(
        _STR,
        "what else in the logs explains a printed rate that is too high: `sequence_length` (of the"
        " data), `formula`, `cp_off`, `precision`, else `nothing`; the first of these that leaves a"
        " possible rate",
        _GPU,
    ),
    "rate_explanation": Fact(_STR, "the same as a sentence, which says how well", _GPU),
    "mfu_median": Fact(_FLOAT, "median of the printed MFU, 0 to 1: a claim of the trainer"),
    "mfu_denominator_tflops": Fact(
        _FLOAT,
        "what the printed MFU divides by: median of printed TFLOP/s over printed MFU",
        _THROUGHPUT,
    ),
    "mfu_denominator_error": Fact(
        _FLOAT,
        "how far that is from the nearest dense peak of this GPU that it may rightly be, as a share"
        " of it",
        _GPU,
    ),
    "step_ms_median": Fact(_FLOAT, "median of the printed milliseconds per iteration", _LAST),
    "clock_step_ms": Fact(
        _FLOAT,
        "median milliseconds per iteration by the time stamps of the lines; null where they carry"
        " none, or stand too close for stamps of one second",
        _LAST,
    ),
    "pace_source": Fact(
        _STR,
        "what tells the time of a step: `the printed step times`, `the printed tokens/s`, `the"
        " printed TFLOP/s` or `the time stamps of the lines`, the first of these that most lines"
        " have; all facts about pace are by this one",
        _LAST,
    ),
    "steady_iterations": Fact(
        _INT,
        "logged iterations that count as steady: without warm-up, ramp-up of the batch, and pauses"
        " for checkpoints, evaluation and the like; where time stamps tell their pace, stretches of"
        " them that are long enough for the stamps",
        _LAST,
    ),
    "step_ms_steady": Fact(
        _FLOAT,
        "median milliseconds per iteration over the steady iterations, printed or by time stamps;"
        " null below three of them",
        _LAST,
    ),
    "step_ms_steady_mad": Fact(_FLOAT, "their median absolute deviation from it", _LAST),
    "tflops_steady": Fact(
        _FLOAT, "median of the printed model TFLOP/s/GPU over the steady iterations", _THROUGHPUT
    ),
    "tflops_steady_mad": Fact(_FLOAT, "its median absolute deviation", _THROUGHPUT),
    "tokens_per_s_steady": Fact(
        _FLOAT, "median of tokens_per_s_per_gpu over the steady iterations", _LAST
    ),
    "tokens_per_s_steady_mad": Fact(_FLOAT, "its median absolute deviation", _LAST),
    "pace_change": Fact(
        _FLOAT,
        "time of a step in the last tenth of the steady iterations (25 to 1000 lines) over that in"
        " the fastest stretch of as many before it: medians",
        _LAST,
    ),
    "pace_change_apart": Fact(
        _FLOAT,
        "the same of the lower quartile at the end and the upper quartile before: above 1 where"
        " three of four steps are slower than three of four were",
        _LAST,
    ),
    "pace_early": Fact(_STR, "the median before, with its unit", _LAST),
    "pace_late": Fact(_STR, "the median at the end, with its unit", _LAST),
    "step_ms_early": Fact(
        _FLOAT, "the median before in milliseconds; null where a rate tells the pace", _LAST
    ),
    "step_ms_late": Fact(
        _FLOAT, "the median at the end in milliseconds; null where a rate tells the pace", _LAST
    ),
    "late_iteration": Fact(_INT, "first iteration of that last stretch", _LAST),
    "speed_change": Fact(
        _FLOAT,
        "speed of the steady iterations over that of the attempt before it with the same model,"
        " batch, precision and parallel sizes; null if there is none, or no one source tells the"
        " pace of both",
        _DUMP,
    ),
    "speed_source": Fact(
        _STR, "what tells the pace of both, as pace_source: the best that both have"
    ),
    "speed_now": Fact(_STR, "median of this attempt by it, with its unit"),
    "speed_lines": Fact(_INT, "its steady iterations by it"),
    "speed_change_noise": Fact(
        _FLOAT, "standard deviation of the noisier of the two, as a share, by its deciles", _LAST
    ),
    "speed_before_attempt": Fact(_INT, "number of the attempt that speed_change compares with"),
    "speed_before_lines": Fact(_INT, "steady iterations of that one"),
    "loss_resume_change": Fact(
        _FLOAT,
        "loss behind a resume minus the loss before: median over the same iterations of an earlier"
        " attempt, or between its last lines and the first of this one; null where none is resumed",
        _LAST,
    ),
    "loss_resume_before": Fact(_FLOAT, "median of the earlier losses compared", _LAST),
    "loss_resume_noise": Fact(
        _FLOAT,
        "standard error of loss_resume_change, from the scatter of the losses before and behind it",
        _LAST,
    ),
    "loss_resume_lines": Fact(_INT, "lines compared", _LAST),
    "loss_resume_basis": Fact(
        _STR, "what was compared, in words: `the same iterations` or `the last lines before it`"
    ),
    "collective_timeouts": Fact(
        _INT,
        "ranks that waited in a collective until it timed out, by their own words or those of"
        " others; 0 where no line says so; lines without a rank count as one per stream, which is"
        " the least that it can be",
    ),
    "collective_failures": Fact(
        _INT,
        "ranks that print the stack of a collective that failed, by a time-out or another error,"
        " and no time-out of their own; 0 where no line says so",
    ),
    "timeout_counted": Fact(_STR, "how many ranks timed out, in the words that the lines bear out"),
    "timeout_explained": Fact(
        _BOOL,
        "a rank of this attempt raised, crashed or was killed, so that the others waited in vain;"
        " null without time-outs",
    ),
    "timeout_ranks": Fact(_INTS, "the ranks that waited, as far as they are known"),
    "timeout_told_ranks": Fact(
        _INTS, "ranks that were told of another one's time-out and print none of their own"
    ),
    "timeout_call_sites": Fact(
        _STR,
        "where in the program the ranks wait, in words",
        "set TORCH_NCCL_TRACE_BUFFER_SIZE=2000",
    ),
    "timeout_rank": Fact(
        _INT,
        "the rank whose time-out stands first; null where no one file shows them all",
        "keep the standard error of every rank",
    ),
    "timeout_collective": Fact(
        _STR, "the collective in words: operation, number and group, as far as the lines say them"
    ),
    "timeout_backend": Fact(_STR, "`nccl` or `gloo`"),
    "timeout_group": Fact(
        _STR,
        "the process group that timed out, with its level of hierarchical context parallelism",
        "PyTorch names groups since 2.4; gloo names none",
    ),
    "timeout_operation": Fact(_STR, "the operation that timed out, as its backend calls it"),
    "timeout_sequence": Fact(_INT, "its number in its group"),
    "timeout_limit_ms": Fact(_INT, "the limit it ran into, milliseconds"),
    "timeout_suspects": Fact(
        _INTS,
        "ranks that the others waited for, as far as counters, dumps or their silence name them;"
        " empty if unknown",
        "keep the standard error of every rank; " + _DUMPS,
    ),
    "timeout_summary": Fact(
        _STR, "what timed out, on which rank first and at which limit, as far as the lines say it"
    ),
    "timeout_reason": Fact(_STR, "why these are the suspects, or why nobody is named, in words"),
    "size_mismatch_found": Fact(
        _BOOL,
        "ranks called the same collective with different sizes; FALSE where some could be compared"
        " and were equal, null where none could",
        _DUMPS,
    ),
    "size_mismatch_ranks": Fact(_INTS, "ranks that a majority contradicts; empty if none does"),
    "size_mismatch_text": Fact(_STR, "the collective and its sizes, in words"),
    "operation_mismatch_found": Fact(
        _BOOL, "ranks called different collectives under the same number; as above", _DUMPS
    ),
    "operation_mismatch_ranks": Fact(_INTS, "ranks that a majority contradicts; empty if none"),
    "operation_mismatch_text": Fact(_STR, "the collectives, in words"),
    "dump_ranks": Fact(_INTS, "ranks with a flight-recorder dump; null if there is none", _DUMPS),
    "dump_ranks_missing": Fact(
        _INTS,
        "ranks without a dump that are members of groups which the dumps of others list; null"
        " without dumps, or where their names do not tell the ranks",
        _DUMPS,
    ),
    "dump_ranks_expected": Fact(_INT, "members of all these groups", _DUMPS),
    "straggler_reports": Fact(
        _INT,
        "valid reports of Megatron's straggler detector; null without any straggler report",
        _STRAGGLERS,
    ),
    "straggler_reports_invalid": Fact(
        _INT, "its reports with impossible numbers, or out of step; null as above", _STRAGGLERS
    ),
    "straggler_named_ranks": Fact(
        _INTS, "ranks that NVRx names as stragglers; empty if none, null as above", _STRAGGLERS
    ),
    "straggler_rank": Fact(
        _INT, "the rank that is slowest in most of Megatron's reports", _STRAGGLERS
    ),
    "straggler_share": Fact(_FLOAT, "share of the reports in which it is, 0 to 1", _STRAGGLERS),
    "straggler_slowdown": Fact(
        _FLOAT,
        "median over these of its time against the fastest rank's: 0.1 is 10 % slower",
        _STRAGGLERS,
    ),
    "straggler_lists": Fact(
        _INT,
        "pairs of lists of the lowest and highest TFLOP/s; 0 if none, null without any report",
        "--log-straggler --straggler-minmax-count 8",
    ),
    "straggler_low_ranks": Fact(_INTS, "the ranks that stand in most of the lower lists"),
    "straggler_low_share": Fact(_FLOAT, "share of the lists in which each does, 0 to 1"),
    "straggler_low_deficit": Fact(
        _FLOAT,
        "share by which the best of them is below the median of the upper list, median over lists",
    ),
    "straggler_scores": Fact(_INT, "scores of NVRx for its lowest rank; 0 if none, null as above"),
    "straggler_score_rank": Fact(_INT, "that rank"),
    "straggler_score": Fact(_FLOAT, "the median of its scores; 1 is as fast as the best"),
    "straggler_ranks": Fact(
        _INTS,
        "the ranks that NVRx names, else the slowest of most reports, else those of the lists",
    ),
    "straggler_text": Fact(_STR, "who is slow by these reports, in words"),
    "failures": Fact(
        _INT, "ranks that ended by exception or signal, torchrun's own stops not counted"
    ),
    "culprit_ranks": Fact(_INTS, "ranks the evidence points at; empty if unknown"),
    "elastic_root_rank": Fact(_INT, "the rank that torchelastic calls the root cause"),
    "elastic_root_role": Fact(
        _STR, "`root` or `victim`: what that rank really is; null where it cannot be told"
    ),
    "ranks_seen": Fact(_INTS, "global ranks told apart in the logs"),
    "ranks_missing": Fact(
        _INTS,
        "ranks of the world without a file of their own; null where files do not tell ranks apart",
        "pass --world-size, and collect one file per rank",
    ),
    **BASELINE_FACTS,
}
"""Fact table `attempts`: one row per attempt."""

ITERATION_FACTS: Final[Mapping[str, Fact]] = {
    "attempt": Fact(_INT, "number of the attempt, from 0"),
    "iteration": Fact(_INT, "iteration number as printed; null for a step line without number"),
    "finished": Fact(_BOOL, "the step finished; FALSE where Megatron refused its result"),
    "interval_iterations": Fact(
        _INT, "iterations since the line before: what the line averages over"
    ),
    "step_ms": Fact(_FLOAT, "elapsed time per iteration, milliseconds"),
    "tflops_per_gpu": Fact(_FLOAT, "printed model TFLOP/s/GPU", _THROUGHPUT),
    "tokens_per_s_per_gpu": Fact(
        _FLOAT,
        "printed tokens/s/GPU, else batch x sequence / time / ranks; null where none is printed and"
        " sequences are packed or vary",
    ),
    "mfu": Fact(_FLOAT, "printed model FLOPs utilization, 0 to 1: a claim of the trainer"),
    "lm_loss": Fact(
        _FLOAT, "printed loss; null if the field is absent, NaN or Inf where printed so"
    ),
    "lm_loss_present": Fact(_BOOL, "the line has a loss field"),
    "lm_loss_finite": Fact(
        _BOOL, "the printed loss is a finite number; null if the field is absent"
    ),
    "loss_seen_before": Fact(_BOOL, "an earlier line of the attempt has a loss field"),
    "grad_norm": Fact(_FLOAT, "printed gradient norm; null if the field is absent"),
    "grad_norm_finite": Fact(_BOOL, "the gradient norm is a finite number; null if absent"),
    "lm_loss_usual": Fact(
        _FLOAT, "median loss of up to 96 lines before this one (of whole blocks of eight)", _LAST
    ),
    "lm_loss_deviations": Fact(
        _FLOAT,
        "distance of the loss from it, in robust standard deviations of the logarithms of those"
        " lines, at least 1 % each",
        _LAST,
    ),
    "lm_loss_deviations_of_two": Fact(
        _FLOAT,
        "what this line and one beside it are both above: the lesser of its deviations and the"
        " greater of its neighbours'",
        _LAST,
    ),
    "lm_loss_before": Fact(
        _INT,
        "lines that the loss is compared with; 0 where this line has none, null where none has",
        _LAST,
    ),
    "lm_loss_lowest": Fact(
        _FLOAT,
        "lowest level of the loss so far, since the learning rate last rose; the level is the"
        " running median of up to 96 lines, null for the first 32",
        _LAST,
    ),
    "lm_loss_kept": Fact(
        _FLOAT, "lowest level from this line to the end of the attempt: what it never fell below"
    ),
    "lm_loss_climb_lines": Fact(
        _INT,
        "lines in which the level rose from the lowest fifth of the rise that it kept until the end"
        " to the highest fifth; 0 before they begin, and where nothing was kept",
    ),
    "lm_loss_climb_rising": Fact(
        _FLOAT, "share of the sixteen parts of these lines that are higher than the one before"
    ),
    "lm_loss_climb_largest": Fact(
        _FLOAT, "share of the climb that the largest step between two of these parts makes"
    ),
    "lm_loss_returned": Fact(
        _FLOAT, "largest rise of the level that the loss came back from before; 0 as above"
    ),
    "lm_loss_growth": Fact(_STR, "the climb in words; empty as above"),
    "grad_norm_usual": Fact(_FLOAT, "as lm_loss_usual, of the gradient norm", _LAST),
    "grad_norm_deviations": Fact(_FLOAT, "as lm_loss_deviations, of the gradient norm", _LAST),
    "grad_norm_deviations_of_two": Fact(
        _FLOAT, "as lm_loss_deviations_of_two, of the gradient norm", _LAST
    ),
    "grad_norm_surprise": Fact(
        _FLOAT,
        "minus the natural logarithm of the chance that a line is so high, if the tail of up to"
        " 1024 lines before it is a power law",
        _LAST,
    ),
    "grad_norm_surprise_of_two": Fact(
        _FLOAT, "as lm_loss_deviations_of_two, of this surprise", _LAST
    ),
    "grad_norm_before": Fact(_INT, "as lm_loss_before, of the gradient norm", _LAST),
    "grad_norm_recent": Fact(
        _FLOAT, "median gradient norm of the last whole block of eight lines", _LAST
    ),
    "grad_norm_lowest": Fact(_FLOAT, "lowest grad_norm_usual so far", _LAST),
    "grad_norm_first": Fact(_FLOAT, "grad_norm_usual of the first 32 lines", _LAST),
    "not_finite_soon": Fact(
        _BOOL, "a loss or gradient norm that is NaN or infinite follows within ten lines"
    ),
    "cp_hint": Fact(
        _STR,
        "what context parallelism may have to do with it, in words, where the first iteration has a"
        " NaN or Inf and the CP size is above 1; else empty",
    ),
    "learning_rate_warms_up": Fact(
        _BOOL, "the highest learning rate of the attempt is still to come; FALSE if none is printed"
    ),
    "policy_update": Fact(
        _BOOL, "the line is of reinforcement learning: its loss is an objective of a policy"
    ),
    "loss_scale": Fact(_FLOAT, "printed loss scale"),
    "learning_rate": Fact(_FLOAT, "printed learning rate"),
    "skipped_iterations": Fact(_INT, "`number of skipped iterations` of the interval"),
    "nan_iterations": Fact(_INT, "`number of nan iterations` of the interval"),
    "global_batch_size": Fact(_INT, "printed global batch size in sequences"),
    "consumed_samples": Fact(_INT, "printed consumed samples"),
}
"""Fact table `iterations`: one row per logged iteration of an attempt."""

FAILURE_FACTS: Final[Mapping[str, Fact]] = {
    "attempt": Fact(_INT, "number of the attempt, from 0"),
    "kind": Fact(
        _STR,
        "`exception`, `exit` (a process ended by code or signal), `cause` (a line says why),"
        " `timeout` (a rank waited in a collective that never ended), `suspect` (a rank that the"
        " others waited for, shown at the line of the first of them)",
    ),
    "role": Fact(
        _STR,
        "`root` (a candidate for the first cause), `cascade` (an echo of another rank's end), "
        "`teardown` (stopped by the launcher), `rejection` (a start-up check), `confirmation` (what"
        " bears out another cause), `advice` (what a library suggests)",
    ),
    "cause": Fact(
        _STR,
        "what a line or an exception states as the reason, such as `gpu_oom`, `host_oom`,"
        " `shared_memory`, `disk_full`, `gpu_lost`, `switch_failed`, `dns`, `rendezvous`,"
        " `port_in_use`, `checkpoint_mismatch`, `nan`, `time_limit`, `preempted`, `cancelled`,"
        " `node_failure`, `signal`; null where none is stated",
    ),
    "what": Fact(_STR, "the cause in words"),
    "rank": Fact(_INT, "global rank that it was seen on; null if unknown"),
    "culprit": Fact(_INT, "that rank where it is to blame: of roots only, never of a missing peer"),
    "who": Fact(
        _STR,
        "whom it met, in words: `rank 3`, `rank 3 on gpu-node07`, `node gpu-node07`, `a rank that"
        " is not named`; never null",
    ),
    "lines": Fact(_INT, "lines that say so; null for exceptions and exits"),
    "node": Fact(_STR, "the node that a line names: of the GPU, of the process, or not reached"),
    "device": Fact(_STR, "the GPU as named: a number or a PCI address"),
    "xid": Fact(_INT, "Xid of NVIDIA's driver"),
    "detail": Fact(_STR, "what the line adds: bytes asked for, path, signal, reason"),
    "field": Fact(_STR, "what of a checkpoint does not fit, or which result is NaN"),
    "stored": Fact(_STR, "its value in the checkpoint; the capacity of a GPU out of memory"),
    "given": Fact(_STR, "its value in this run"),
    "time": Fact(_STR, "wall-clock of the line, month to second; null where it carries none"),
    "phase": Fact(
        _STR,
        "`start-up`, `rendezvous`, `group creation`, `load`, `first iteration`, `iteration 12`,"
        " `evaluation`, `save` or `exit`: where the run was",
    ),
    "during": Fact(_STR, "the phase in words, such as `at the start of iteration 2`"),
    "where": Fact(_STR, "file and line of the innermost frame of the traceback"),
    "exception_type": Fact(_STR, "type of the exception"),
    "message": Fact(_STR, "message of the exception, or torchelastic's text"),
    "exit_code": Fact(_INT, "exit code of the process; negative for a signal"),
    "signal": Fact(_STR, "signal name such as SIGKILL; null where no signal ended it"),
    "workers_hint": Fact(
        _STR,
        "the dataloader workers that are configured, where memory was full: `(num_workers 128, x 8"
        " ranks on the node: 1024)`; empty if none, or not known",
    ),
    "kill_explained": Fact(
        _BOOL, "a kernel or scheduler line of this run says who killed processes"
    ),
    "iteration": Fact(_INT, "last iteration finished before the failure"),
    "saved_after": Fact(
        _BOOL,
        "a checkpoint was saved behind the line of a scheduler or a signal; null where the order"
        " cannot be told",
        "keep the scheduler's lines and rank 0's output in one file",
    ),
}
"""Fact table `failures`: one row per (attempt, rank, kind)."""

RUN_FACTS: Final[Mapping[str, Fact]] = {
    "attempt": Fact(_INT, "the judged attempt"),
    "attempts": Fact(_INT, "number of attempts"),
    "net_iterations": Fact(
        _INT,
        "iterations that checkpoints, or the run's own end, keep of all attempts; null where no"
        " attempt says where it began",
        "keep rank 0's start-up output (`successfully loaded checkpoint ...`)",
    ),
    "lost_iterations": Fact(_INT, "sum of iterations_lost over the attempts that say it"),
    "lost_s": Fact(_FLOAT, "sum of lost_s over the attempts that say it, seconds"),
    "stuck_attempts": Fact(
        _INT,
        "how many of the last attempts began at the same iteration and ended without a checkpoint"
        " beyond it; null where it is unknown at which iteration one began",
        "keep rank 0's start-up output (`successfully loaded checkpoint ...`)",
    ),
    "stuck_iteration": Fact(_INT, "that iteration; null where none of them got to one"),
    "chain_jobs": Fact(
        _STRS,
        "jobs of one directory that go on from each other's checkpoints, the judged one last; empty"
        " if it goes on from none",
    ),
    "chain_text": Fact(_STR, "these, as `[101 → 102 → 103]`; empty if there are none"),
    "chain_attempts": Fact(_INT, "attempts of all these jobs; those of the judged one if none"),
    "chain_net_iterations": Fact(_INT, "net_iterations of all these attempts"),
    "chain_lost_iterations": Fact(_INT, "lost_iterations of all these attempts"),
    "chain_stuck_attempts": Fact(
        _INT,
        "stuck_attempts of all these attempts",
        "keep rank 0's start-up output (`successfully loaded checkpoint ...`)",
    ),
    "chain_stuck_iteration": Fact(_INT, "stuck_iteration of all these attempts"),
    "drift_lines": Fact(_INT, "lines that hold a parser's needle but do not match its pattern"),
    "drift_parsers": Fact(_STRS, "parsers that met such lines"),
    "truncated_inputs": Fact(_INT, "files or blocks that are cut off"),
    "unreadable_files": Fact(_INT, "files that could not be read"),
    "interleaved_lines": Fact(_INT, "lines in which another rank's line begins; never null"),
    "ray_repeats": Fact(_INT, "lines that Ray printed once for many; never null"),
    "files": Fact(_INT, "log files read"),
    "recognised_lines": Fact(_INT, "lines that a parser understood"),
    "ranks_missing": ATTEMPT_FACTS["ranks_missing"],
    "ranks_missing_count": Fact(_INT, "number of missing ranks; null as above"),
    "world_size": CONFIG_FACTS["world_size"],
}
"""Fact table `run`: one row for the whole run, about the logs themselves."""

FACTS: Final[Mapping[str, Mapping[str, Fact]]] = {
    "attempts": ATTEMPT_FACTS,
    "iterations": ITERATION_FACTS,
    "failures": FAILURE_FACTS,
    "run": RUN_FACTS,
}
"""Every fact table by name."""

LOCATION_COLUMNS: Final[Mapping[str, pl.DataType]] = {
    "file": _STR,
    "line": _INT,
    "text": _STR,
}
"""Carried by the fact tables `iterations` and `failures` (and by event tables) beside their facts:
where the row comes from. `text` may be null: it is then read again for the lines that are shown."""


def schema(table: str) -> dict[str, pl.DataType]:
    """Column types of one fact table, in the order of its facts."""
    return {name: fact.dtype for name, fact in FACTS[table].items()}


def empty(table: str) -> pl.DataFrame:
    """The fact table without rows: what rules are type-checked against."""
    return pl.DataFrame(schema=schema(table))
