package evalcmd

import (
	"fmt"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/eval"
	"github.com/callgate/callgate/internal/cli"
)

// evalSummary is the last line of eval --json.
type evalSummary struct {
	Kind     string       `json:"kind"`
	Cases    int          `json:"exchanges"`
	Failed   int          `json:"failed"`
	LeftOut  int          `json:"left_out"`
	MaxTurns int          `json:"max_turns"`
	Prose    []eval.Prose `json:"prose,omitempty"`
}

// printEval writes what was found, and decides the exit code.
func printEval(e cmdenv.Env, v *evaluation, f evalFlags) error {
	failed := eval.Failed(v.results, f.maxTurns) + eval.Failed(v.refused, f.maxTurns)
	if f.json {
		lines := cli.NewTable(e.Stdout, true)
		for _, list := range [][]eval.Result{v.results, v.refused} {
			for i := range list {
				if err := lines.Print(list[i]); err != nil {
					return err
				}
			}
		}
		for _, o := range v.omitted {
			if err := lines.Print(o); err != nil {
				return err
			}
		}
		if err := lines.Print(evalSummary{"summary", len(v.results) + len(v.refused), failed, len(v.omitted), f.maxTurns, v.prose}); err != nil {
			return err
		}
	} else if err := writeEval(e, v); err != nil {
		return err
	}
	if failed > 0 {
		if !f.json {
			fmt.Fprintf(e.Stdout, "%d exchanges did not end as they were to, within %d turns\n", failed, f.maxTurns)
		}
		return cli.ErrRefused
	}
	return nil
}

func writeEval(e cmdenv.Env, v *evaluation) error {
	fmt.Fprintf(e.Stdout, "Completions after the refused one, until the exchange ended as it was to:\n\n")
	if err := eval.WriteTurns(e.Stdout, v.results); err != nil {
		return err
	}
	if len(v.refused) > 0 {
		fmt.Fprintf(e.Stdout, "\nThe same for the refused completions of the corpora:\n\n")
		if err := eval.WriteTurns(e.Stdout, v.refused); err != nil {
			return err
		}
	}
	if len(v.omitted) > 0 {
		fmt.Fprintf(e.Stdout, "\n%d codes and completions are left out; --json names each, and why\n", len(v.omitted))
	}
	if len(v.prose) == 0 {
		return nil
	}
	fmt.Fprintln(e.Stdout)
	return eval.WriteProse(e.Stdout, v.prose)
}
