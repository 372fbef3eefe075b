package main

import (
	"encoding/json"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/cli"
)

// approvalLine is what a list shows of an approval.
type approvalLine struct {
	ID    string    `json:"id"`
	State string    `json:"state"`
	Rules []string  `json:"rules"`
	Tool  string    `json:"tool"`
	Agent string    `json:"agent"`
	Until time.Time `json:"until"`
}

func newApprovalsList(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var waiting, asJSON bool
	var rule string
	c := &cobra.Command{
		Use:     "list",
		Short:   "List approvals, those that you may decide first",
		Example: "  callgate approvals list --json | jq -r .id",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{}
			if waiting {
				query.Set("state", "waiting")
			}
			if rule != "" {
				query.Set("rule", rule)
			}
			table := cli.NewTable(e.Stdout, asJSON, "ID", "STATE", "RULES", "TOOL", "AGENT", "UNTIL")
			err := api.pages(c.Context(), "/v1/approvals", "approvals", query, func(raw json.RawMessage) error {
				var a approvalLine
				if err := json.Unmarshal(raw, &a); err != nil {
					return cli.PeerError{Err: err}
				}
				return table.Print(raw, shownText(a.ID), shownText(a.State), shownText(strings.Join(a.Rules, ",")), cli.FirstLine(a.Tool),
					cli.FirstLine(a.Agent),
					a.Until.Local().Format(time.DateTime))
			})
			if err != nil {
				return err
			}
			return table.Flush()
		},
	}
	c.Flags().BoolVar(&waiting, "waiting", false, "only those that wait")
	c.Flags().StringVar(&rule, "rule", "", "only those of this `RULE`")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return api.add(c)
}
