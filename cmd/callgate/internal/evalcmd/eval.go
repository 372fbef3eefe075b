// Package evalcmd holds "callgate eval": it runs the cases of the package eval, and prints what
// came of them.
package evalcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/eval"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/terminal"
)

// evalFlags are the flags of eval.
type evalFlags struct {
	config, cases, corpora string
	maxTurns               int
	json                   bool
}

func New(e cmdenv.Env) *cobra.Command {
	var f evalFlags
	c := &cobra.Command{
		Use:   "eval [--cases FILE] [--corpora FOLDER]",
		Short: "Measure how quickly a refusal tells a model what to change",
		Long: `Measure how quickly a refusal tells a model what to change: how many completions follow
a refused one until a call passes. Refused completions are judged, a scripted model reads the
tool_result that a real one would read, and its next completion is judged, at most 5 times.
Nothing is recorded or taken from a limit, and no tool of a configuration is run.

The scripted models know what they want to say, and otherwise only what they read:

  fields    the members code, violations, did_you_mean and retry_after_ms; never a sentence
  words     the sentences of message alone
  stubborn  nothing: it repeats itself, and is to get nowhere

The built-in cases are for the built-in configuration. --cases reads others, one JSON object a
line, for the configuration of --config:

  {"name":"a page","code":"unexpected_argument","ends":"call",
   "completion":"{\"tool\":{\"name\":\"web.search\",\"arguments\":{\"query\":\"a\",\"page\":2}}}",
   "intent":{"tool":"web.search","arguments":{"query":"a","page":2}},
   "call":{"tool":"web.search","arguments":{"query":"a"}}}

(on one line). A case ends in the call that the model wanted, or in "text" where no call can
pass. intent may have others, values of arguments that would do as well, given, the names of
tools that the prompt has, and agent. With scene the call meets more than the configuration:
limits, people, a log, a store or a tool that fails. Such a call is executed where it passes, on
a server of this command's own on 127.0.0.1. An unknown name is answered with the known ones.

--corpora, or the variable CALLGATE_CORPORA, names a folder of recorded completions: those
that are refused become cases too, and the share of plain answers that are refused is counted.

The exit code is 0 when each case ends within --max-turns, 1 when one does not, 2 when cases
cannot be read.`,
		Example: `  callgate eval
  callgate eval --max-turns 3 --json
  callgate eval --config callgate.yaml --cases cases.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runEval(c.Context(), e, f) },
	}
	cmdenv.ConfigFlag(c, &f.config)
	c.Flags().Var((*cmdenv.FileFlag)(&f.cases), "cases", "cases to run instead of the built-in ones, in this `FILE`")
	c.Flags().StringVar(&f.corpora, "corpora", "", "the `FOLDER` of the corpora (default: $CALLGATE_CORPORA; without it, none)")
	c.Flags().IntVar(&f.maxTurns, "max-turns", eval.MaxTurns, "fail if a case takes more completions than this `NUMBER` after the refused one")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON: an object a line, the last of the kind summary")
	_ = c.MarkFlagDirname("corpora") // a flag that was just added can be marked
	return c
}

func runEval(ctx context.Context, e cmdenv.Env, f evalFlags) error {
	if f.maxTurns < 1 || f.maxTurns > eval.MaxTurns {
		return fmt.Errorf("--max-turns is %d; expected 1 to %d", f.maxTurns, eval.MaxTurns)
	}
	if f.config != "" && f.cases == "" {
		return errors.New("the built-in cases are for the built-in configuration: --config needs --cases")
	}
	cases, config, err := evalCases(e, f)
	if err != nil {
		return err
	}
	judge, err := eval.New(app.KernelConfig(config, nil), func() eval.Engine { return e.Engine() })
	if err != nil {
		return cli.InternalError{Err: err}
	}
	progress := terminal.NewProgress(e.Stderr, "exchanges")
	defer progress.Done()
	var found evaluation
	if found.results, err = runCases(ctx, judge, cases, progress); err != nil {
		return err
	}
	if f.cases == "" {
		found.omitted = eval.OmittedCodes(cases)
		if err := found.corpora(ctx, judge, cmp.Or(f.corpora, os.Getenv("CALLGATE_CORPORA")), progress); err != nil {
			return err
		}
	} else if f.corpora != "" {
		return errors.New("the corpora are judged by the built-in configuration: give --corpora without --cases")
	}
	return printEval(e, &found, f)
}

// evalCases reads the cases, and the configuration that they are for.
func evalCases(e cmdenv.Env, f evalFlags) ([]eval.Case, *configs.Config, error) {
	if f.cases == "" {
		cases, err := eval.BuiltInCases()
		if err != nil {
			return nil, nil, cli.InternalError{Err: err}
		}
		config, err := configs.Default("")
		return cases, config, err
	}
	config, err := e.Load(f.config)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(f.cases)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read %s: %w", f.cases, oserr.Reason(err))
	}
	cases, err := eval.ReadCases(f.cases, data)
	return cases, config, err
}
