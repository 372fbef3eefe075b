package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
)

// toolReach says of one tool whether an agent may use it, and which rows say so.
type toolReach struct {
	Agent     string   `json:"agent"`
	Workspace string   `json:"workspace"`
	Project   string   `json:"project"`
	Tool      string   `json:"tool"`
	Reach     string   `json:"reach"` // never, on conditions, asks or always
	Rows      []string `json:"rows"`  // empty where they depend on the arguments
}

// allowedWords say to people whether an agent may use a tool.
var allowedWords = map[policy.Reach]string{policy.Never: "no", policy.OnConditions: "conditionally", policy.Asks: "after approval",
	policy.Always: "yes"}

// explainAll says of every tool whether the agent of a request may use it.
func explainAll(ctx context.Context, e env, c *configs.Config, r policy.Request, asJSON bool) error {
	if _, err := c.Workspaces.Project(r.Agent, r.Workspace, r.Project); err != nil {
		return fmt.Errorf("agent %q, project %s/%s: %w", r.Agent, r.Workspace, r.Project, err)
	}
	var names []string
	for _, t := range c.Tools.Entries() {
		names = append(names, t.Name())
	}
	slices.Sort(names)
	table := cli.NewTable(e.Stdout, false, "TOOL", "ALLOWED", "ROW")
	for _, name := range slices.Compact(names) { // one row for all versions
		r.Tool = name
		may, err := c.Policy.Reach(r.Agent, r.Workspace, r.Project, name)
		if err != nil {
			return cli.InternalError{Err: err}
		}
		rows := []string{}
		reads, err := c.Policy.Reads(r.Agent, r.Workspace, r.Project, name)
		if err != nil {
			return cli.InternalError{Err: err}
		}
		row := "it depends on the arguments: add --tool " + name
		if !reads.None() {
			row = "it depends on what was done before: add --tool " + name
		}
		if may == policy.Asks {
			row = "people are asked first: add --tool " + name
		}
		if may == policy.Always || may == policy.Never {
			// The arguments do not matter, so none are given.
			decision, err := c.Policy.Permit(ctx, r)
			if err != nil {
				return cli.InternalError{Err: err}
			}
			if row = strings.Join(decision.Rows, ", "); row == "" {
				row = "no row matches"
			}
			rows = append(rows, decision.Rows...)
		}
		if asJSON {
			if err := json.NewEncoder(e.Stdout).Encode(toolReach{r.Agent, r.Workspace, r.Project, name, may.String(), rows}); err != nil {
				return err
			}
			continue
		}
		if err := table.Print(nil, name, allowedWords[may], row); err != nil {
			return err
		}
	}
	if asJSON {
		return nil
	}
	return table.Flush()
}
