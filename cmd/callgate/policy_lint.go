package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/configs/policylint"
	"github.com/callgate/callgate/internal/cli"
)

func newPolicyLint(e env) *cobra.Command {
	var all, asJSON bool
	c := e.WithUntested(&cobra.Command{
		Use:   "lint",
		Short: "Find rows and limits without effect, or of more effect than they look",
		Long: `Find rows of the policy without effect (nothing matches them, other rows do the same or
override them, their condition cannot be true), patterns that allow a tool that acts once,
and limits that no call reaches. Only what is certain is reported.

--all adds what may be intended: conditions that read no argument, or an optional one; tools
that nobody may use; agents that may use none.

A finding has a fixed id and names the page that explains it. Exit code 1: there is a finding.`,
		Example: `  callgate policy lint --all --json`,
		Args:    cobra.NoArgs,
	}, func(ctx context.Context, loaded *configs.Config, _ []string) error {
		found, err := policylint.Lint(ctx, loaded, all)
		if err != nil {
			return cli.InternalError{Err: err}
		}
		if err := printFindings(e, found, asJSON); err != nil {
			return err
		}
		if len(found) > 0 {
			return cli.ErrRefused
		}
		return nil
	})
	c.Flags().BoolVar(&all, "all", false, "also report what may be intended")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line; the last is the summary")
	return c
}

// printFindings prints findings, a line each, and how many there are.
func printFindings(e env, found []policylint.Finding, asJSON bool) error {
	if !asJSON {
		for _, f := range found {
			fmt.Fprintln(e.Stdout, f)
		}
		fmt.Fprintf(e.Stdout, "%d found\n", len(found))
		return nil
	}
	out := json.NewEncoder(e.Stdout)
	for _, f := range found {
		if err := out.Encode(struct {
			Kind string `json:"kind"`
			policylint.Finding
		}{"finding", f}); err != nil {
			return err
		}
	}
	return out.Encode(struct {
		Kind  string `json:"kind"`
		Found int    `json:"found"`
	}{"summary", len(found)})
}
