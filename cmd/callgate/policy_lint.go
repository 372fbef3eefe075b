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
		Long: `Find rows of the policy that have no effect (nothing matches them, another row does the
same or overrides them, their condition cannot be true), patterns that allow a tool which acts
once, and limits that no call reaches. Without a row that is found to have no effect every call is
decided as with it: that is not guessed.

--all also reports what may well be meant: conditions that read no argument, or one that may be
absent, tools that nobody may use, and agents that may use none.

Each finding has an id, which does not change, and names the page that explains it. The exit code
is 0 when nothing is found, 1 when something is.`,
		Example: `  callgate policy lint --config callgate.yaml
  callgate policy lint --all --json`,
		Args: cobra.NoArgs,
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
	c.Flags().BoolVar(&all, "all", false, "also report what may well be meant")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON: an object a line, the last of the kind summary")
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
