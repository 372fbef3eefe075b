package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/policy/lab"
)

// policyTestFlags are the flags of policy test.
type policyTestFlags struct {
	run, junit     string
	coverage, json bool
	least          int
}

func newPolicyTest(e env) *cobra.Command {
	var f policyTestFlags
	c := e.WithUntested(&cobra.Command{
		Use:   "test [FILE…]",
		Short: "Run tests of the policy",
		Long: `Run tests of the policy: calls, each judged by the checks of serving, from the tool's schema to
the boundaries of the project. Nothing is executed, recorded or taken from a limit.

Without FILE: the files *_test.yaml beside the policy, and those of the key tests. A
configuration in which one of the latter fails is not loaded: a running gateway keeps the old one.

  tests:
    - name: small refunds run
      agent: Analyst                # or agents: [Analyst, Intern]
      project: acme/alpha           # or projects: [..]
      tool: payments.refund         # or tools: [..]
      arguments: {payment_id: pay_abc123, amount: 50, currency: EUR}
      expect: allow                 # or deny, ask:RULE, or a code such as missing_argument;
                                    # without arguments never, conditions, asks or always
      row: "p, Analyst, acme/alpha, payments.refund, , allow"   # optional: a row that decides
      thread:                       # optional: what was done before
        - {tool: crm.read, arguments: {id: 7}, ago: 30m, ended: result, times: 1}
        - labels: [untrusted]
  # end

A test that could not fail (no expectation, no case, an unknown agent, project, tool or code)
is an error.

Exit code 0: all hold. 1: one fails, or fewer rows than --min decided a case. 2: no test, or
an unreadable file.`,
		Example: `  callgate policy test --coverage --min 80
  callgate policy test --run refund --json refunds_test.yaml`,
		Args: cobra.ArbitraryArgs,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"yaml"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}, func(ctx context.Context, loaded *configs.Config, files []string) error {
		return policyTest(ctx, e, loaded, files, f)
	})
	c.Flags().StringVar(&f.run, "run", "", "run only tests whose names match this regular `EXPRESSION`")
	c.Flags().BoolVar(&f.coverage, "coverage", false, "list rows that decided no case, and conditions not seen both true and false")
	c.Flags().IntVar(&f.least, "min", 0, "fail if fewer `PERCENT` of the rows decided; implies --coverage")
	c.Flags().StringVar(&f.junit, "junit", "", "write a JUnit report to this `FILE`")
	c.Flags().BoolVar(&f.json, "json", false, "print JSON, an object a line; the last is the summary")
	_ = c.MarkFlagFilename("junit", "xml") // a flag that was just added can be marked
	return c
}

// policyTest runs tests, and prints what came of them.
func policyTest(ctx context.Context, e env, loaded *configs.Config, files []string, f policyTestFlags) error {
	if f.least < 0 || f.least > 100 {
		return fmt.Errorf("--min is %d; expected 0 to 100", f.least)
	}
	selected, err := regexp.Compile(f.run)
	if err != nil {
		return fmt.Errorf("--run: %w", err)
	}
	if len(files) == 0 {
		if files, err = loaded.FindTests(); err != nil {
			return err
		}
		if len(files) == 0 {
			return errors.New(
				"there is no test: no file beside the policy has a name that ends in _test.yaml, and the main file has no key tests")
		}
	}
	by, tests, err := loaded.ReadTests(files)
	if err != nil {
		return err
	}
	tests = slices.DeleteFunc(tests, func(t lab.Test) bool { return !selected.MatchString(t.Name) })
	if len(tests) == 0 {
		return fmt.Errorf("no test has a name that matches %q", f.run)
	}
	var coverage *lab.Coverage
	if f.coverage || f.least > 0 {
		coverage = lab.NewCoverage(loaded.Policy)
	}
	results, err := lab.RunTests(ctx, by, tests, coverage)
	if err != nil {
		return cli.InternalError{Err: err}
	}
	if err := printTests(e, results, coverage, f); err != nil {
		return err
	}
	if lab.SummarizeTests(results).FailedTests > 0 || coverage != nil && coverage.Percent() < f.least {
		return cli.ErrRefused
	}
	return nil
}

// printTests writes the reports that the flags ask for.
func printTests(e env, results []lab.TestResult, coverage *lab.Coverage, f policyTestFlags) error {
	if f.junit != "" {
		if err := writeFile(f.junit, func(w io.Writer) error { return lab.WriteJUnit(w, results) }); err != nil {
			return err
		}
	}
	if f.json {
		return lab.WriteTestJSON(e.Stdout, results, coverage)
	}
	lab.WriteTestText(e.Stdout, results)
	if coverage != nil {
		coverage.WriteText(e.Stdout)
		if coverage.Percent() < f.least {
			fmt.Fprintf(e.Stdout, "fewer rows than --min %d%% decided a case\n", f.least)
		}
	}
	return nil
}

// writeFile writes a file again.
func writeFile(name string, write func(io.Writer) error) error {
	out, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", name, oserr.Reason(err))
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, oserr.Reason(err))
	}
	return nil
}
