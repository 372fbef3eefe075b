// Command eval measures how quickly a refusal tells a model what to change, and writes
// docs/grace.md (`make grace`).
//
// A case is a completion that is refused. The kernel judges it, a scripted model reads the bytes
// that a real one would read ({"tool_result":{"tool":…,"output":{"error":…}}}) and sends its next
// completion, until a call passes, the model gives up, or MaxTurns are used up. Scripted models
// know what they wanted to say (Intent), and otherwise only what they read:
//
//	fields    the members code, violations, did_you_mean and retry_after_ms; never a sentence
//	stubborn  nothing: it repeats itself, and is to get nowhere
//
// Nothing is executed, recorded or taken from a limit, but in a scene: there a call meets limits,
// people, a log, a store or a tool that fail it, all in this process, and what passes is executed.
// The figures of a run are the same each time.
//
// A scripted model is no language model. That one succeeds shows that the refusal holds what is
// needed: the place, the name, the form or the requirement.
//
// The built-in cases are for the built-in configuration. -cases reads others, one JSON object a
// line as in cases.jsonl, for the configuration of -config. A case ends in the call that the model
// wanted, or in "text" where no call can pass.
//
// The exit code is 0 when each case ends within -max-turns, 1 when one does not, 2 when cases
// cannot be read.
package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/callgate/callgate/app"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/engine"
	"github.com/callgate/callgate/tools/internal/sample"
)

func main() { sample.Main(run) }

// options are the flags.
type options struct {
	config, cases, corpora, page string
	maxTurns                     int
	json                         bool
}

// run is the whole program. It returns an exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.StringVar(&o.config, "config", "", "the configuration `file` that -cases are for (default: the built-in one)")
	flags.StringVar(&o.cases, "cases", "", "cases to run instead of the built-in ones, in this `file`")
	flags.StringVar(&o.corpora, "corpora", "", "the `folder` of recorded completions: those that are refused become cases too, and refused plain answers are counted (default: $CALLGATE_CORPORA; without it, none)")
	flags.StringVar(&o.page, "page", "", "write the tables as a page to this `file`, docs/grace.md, instead of standard output")
	flags.IntVar(&o.maxTurns, "max-turns", MaxTurns, "fail if a case takes more completions than this `number` after the refused one")
	flags.BoolVar(&o.json, "json", false, "print JSON: an object a line, the last of the kind summary")
	if code, ok := sample.Parse(flags, args, stderr); !ok {
		return code
	}
	return sample.ExitCode("eval", measure(ctx, o, stdout), stderr)
}

func measure(ctx context.Context, o options, stdout io.Writer) error {
	switch {
	case o.maxTurns < 1 || o.maxTurns > MaxTurns:
		return fmt.Errorf("-max-turns is %d; expected 1 to %d", o.maxTurns, MaxTurns)
	case o.cases == "" && o.config != "":
		return errors.New("the built-in cases are for the built-in configuration: -config needs -cases")
	case o.cases != "" && (o.corpora != "" || o.page != ""):
		return errors.New("-corpora and -page are for the built-in configuration: give them without -cases")
	}
	cases, config, err := readInput(o)
	if err != nil {
		return err
	}
	judge, err := New(app.KernelConfig(config, nil), func() Engine { return app.NewEngine("eval", engine.Options{}, nil, nil) })
	if err != nil {
		return err
	}
	var found evaluation
	if found.results, err = runCases(ctx, judge, cases); err != nil {
		return err
	}
	if o.cases == "" {
		found.omitted = OmittedCodes(cases)
		if err := found.corpora(ctx, judge, cmp.Or(o.corpora, os.Getenv("CALLGATE_CORPORA"))); err != nil {
			return err
		}
	}
	if err := found.write(o, stdout); err != nil {
		return err
	}
	if failed := found.failed(o.maxTurns); failed > 0 {
		return &sample.ExitError{Code: sample.ExitFailed,
			Cause: fmt.Errorf("%d exchanges did not end as they were to, within %d turns", failed, o.maxTurns)}
	}
	return nil
}

// readInput reads the cases, and the configuration that they are for.
func readInput(o options) ([]Case, *configs.Config, error) {
	if o.cases == "" {
		cases, err := BuiltInCases()
		if err != nil {
			return nil, nil, err
		}
		config, err := configs.Default("")
		return cases, config, err
	}
	load := configs.Load
	if o.config == "" {
		load = configs.Default
	}
	config, err := load(o.config)
	if err != nil {
		return nil, nil, err
	}
	data, err := os.ReadFile(o.cases)
	if err != nil {
		return nil, nil, err
	}
	cases, err := ReadCases(o.cases, data)
	return cases, config, err
}
