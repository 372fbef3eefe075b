package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/internal/cli"
)

// grantPrefix begins the ids of grants, and of no approval.
const grantPrefix = "grant_"

func newGrants(e env) *cobra.Command {
	api := &adminAPI{env: e}
	var asJSON bool
	c := &cobra.Command{
		Use:   "grants",
		Short: "List grants: approvals that hold beyond one call",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			table := cli.NewTable(e.Stdout, asJSON, "ID", "RULE", "SCOPE", "TOOL", "AGENT", "PRINCIPAL", "UNTIL")
			err := api.pages(c.Context(), "/v1/grants", "grants", url.Values{}, func(raw json.RawMessage) error {
				var g struct {
					ID        string    `json:"id"`
					Rule      string    `json:"rule"`
					Scope     string    `json:"scope"`
					Tool      string    `json:"tool"`
					Agent     string    `json:"agent"`
					Principal string    `json:"principal"`
					Until     time.Time `json:"until"`
				}
				if err := json.Unmarshal(raw, &g); err != nil {
					return cli.PeerError{Err: err}
				}
				return table.Print(raw, shownText(g.ID), shownText(g.Rule), shownText(g.Scope), cli.FirstLine(g.Tool),
					cli.FirstLine(g.Agent),
					cli.FirstLine(g.Principal), g.Until.Local().Format(time.DateTime))
			})
			if err != nil {
				return err
			}
			return table.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object a line")
	return api.add(c)
}

func newRevoke(e env) *cobra.Command {
	api := &adminAPI{env: e}
	c := &cobra.Command{
		Use:   "revoke ID|GRANT",
		Short: "End an approval that has not been used, or a grant",
		Long: `End an approval whose call has not run, or a grant, at once: a call that is about to run is
refused. Only operators may revoke.`,
		Example: "  callgate approvals revoke call_BQPJNL6W6O2CNZGMCGR5HGGAJF",
		Args:    arguments(1, 1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := api.open(); err != nil {
				return err
			}
			path := approvalPath(args[0])
			if strings.HasPrefix(args[0], grantPrefix) {
				path = "/v1/grants/" + url.PathEscape(args[0])
			}
			var answer json.RawMessage
			if err := api.ask(c.Context(), http.MethodDelete, path, nil, &answer); err != nil {
				return err
			}
			fmt.Fprintf(e.Stdout, "%s: revoked\n", shownText(args[0]))
			return nil
		},
	}
	return api.add(c)
}
