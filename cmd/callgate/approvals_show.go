package main

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/cli"
)

// firstDetails are the members of an approval that are shown first.
var firstDetails = []string{
	"id", "url", "state", "rules", "hint", "tool", "version", "effect", "description", "arguments", "agent", "workspace", "project",
	"principal", "user",
	"thread", "opened", "until", "rows", "votes", "ran", "may_vote", "why_not", "digest",
}

func newApprovalsShow(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var asJSON bool
	c := &cobra.Command{
		Use:     "show ID",
		Short:   "Show an approval: the call with its arguments, who asked, and the votes",
		Example: "  callgate approvals show call_BQPJNL6W6O2CNZGMCGR5HGGAJF",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.open(); err != nil {
				return err
			}
			shown, err := api.approval(c.Context(), args[0])
			if err != nil {
				return err
			}
			return api.print(shown, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return api.add(c)
}

func (a *adminAPI) approval(ctx context.Context, id string) (shown map[string]json.RawMessage, err error) {
	return shown, a.ask(ctx, http.MethodGet, approvalPath(id), nil, &shown)
}

// print shows an answer.
func (a *adminAPI) print(answer map[string]json.RawMessage, asJSON bool) error {
	if !asJSON {
		writeDetails(a.Stdout, answer, firstDetails...)
		return nil
	}
	line, err := cli.JSONLine(answer)
	if err == nil {
		_, err = a.Stdout.Write(line)
	}
	return err
}
