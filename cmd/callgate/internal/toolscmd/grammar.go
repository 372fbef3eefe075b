package toolscmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/cmd/callgate/internal/cmdenv"
	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/grammar"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
)

func newToolsGrammar(e cmdenv.Env) *cobra.Command {
	var format, agent, project string
	var only []string
	var compact bool
	c := e.WithConfig(&cobra.Command{
		Use:   "grammar --format " + strings.Join(grammar.Formats(), "|") + " [--agent A] [--project W/P]",
		Short: "Print a grammar of the calls that are accepted, for engines that constrain sampling",
		Long: `Print a grammar of the tool calls that the parser and the schemas of the tools accept:
a model that is held to it makes no call that those refuse.

gbnf is for llama.cpp, ebnf for XGrammar (vLLM, SGLang, MLC), lark for llguidance and
Lark, json-schema for APIs that take a schema of the answer.

With --agent the grammar has the tools that the policy ever allows this agent in the
project, also where people are asked or a condition decides, and a call may name the
agent. Without it, it has all tools. Conditions, limits and boundaries cannot be
part of a grammar: they are judged when the call is made.

Each text of the grammar is accepted. Where it is narrower than a schema, a comment at
the top says so: for example, members of an open object begin with different
characters, since no grammar can say that names differ. A tool whose schema cannot
be written is left out, with the reason, here and on standard error; then the exit
code is 1. The JSON Schema leaves no tool out, but cannot say that names do not repeat.

By default each spelling of a call is in the grammar: escapes in names, any white space,
members in any order. --compact gives one spelling; engines are faster with it.`,
		Example: `  callgate tools grammar --format gbnf --agent Analyst > calls.gbnf
  callgate tools grammar --format json-schema --agent Intern --project acme/alpha
  callgate tools grammar --format lark --compact --tool web.search --tool time.now`,
		Args: cobra.NoArgs,
	}, func(_ context.Context, loaded *configs.Config, _ []string) error {
		options := grammar.Options{Agent: agent, AgentRequired: loaded.AgentRequired, Compact: compact, MaxDepth: loaded.Output.MaxDepth}
		if agent == "" && options.AgentRequired {
			return errors.New("each call must name its agent here (output.agent: required): add --agent")
		}
		tools, err := grammarTools(loaded, agent, project, only)
		if err != nil {
			return err
		}
		g := grammar.New(tools, options)
		if err := g.Write(e.Stdout, format); err != nil {
			return err
		}
		if format == "json-schema" {
			return nil
		}
		for _, l := range g.LeftOut {
			fmt.Fprintf(e.Stderr, "left out: %s: %s\n", l.Tool, l.Reason)
		}
		if len(g.LeftOut) > 0 {
			return cli.ErrRefused
		}
		return nil
	})
	c.Flags().StringVar(&format, "format", "", "the `NOTATION`: "+strings.Join(grammar.Formats(), ", "))
	c.Flags().StringVar(&agent, "agent", "", "the `AGENT` whose calls these are (default: all tools)")
	c.Flags().StringVar(&project, "project", "", "where, as `WORKSPACE/PROJECT` (default: the configuration's)")
	c.Flags().StringArrayVar(&only, "tool", nil, "only this `TOOL`; may be repeated")
	c.Flags().BoolVar(&compact, "compact", false, "one spelling of each call")
	c.MarkFlagsOneRequired("format")
	return c
}

// grammarTools lists the tools that an agent may ever use; all of them without an agent.
func grammarTools(c *configs.Config, agent, project string, only []string) ([]grammar.Tool, error) {
	for _, name := range only {
		if _, known := c.Tools.Lookup(name); !known {
			return nil, fmt.Errorf("--tool: there is no tool %q", name)
		}
	}
	request, err := cmdenv.RequestIn(c, agent, project)
	if err != nil {
		return nil, err
	}
	if agent != "" {
		if _, err := c.Workspaces.Project(agent, request.Workspace, request.Project); err != nil {
			return nil, fmt.Errorf("agent %q, project %s/%s: %w", agent, request.Workspace, request.Project, err)
		}
	}
	var tools []grammar.Tool
	for _, entry := range c.Tools.Entries() {
		latest, _ := c.Tools.Lookup(entry.Name())
		if latest != entry || len(only) > 0 && !slices.Contains(only, entry.Name()) {
			continue
		}
		if agent != "" {
			reach, err := c.Policy.Reach(agent, request.Workspace, request.Project, entry.Name())
			if err != nil {
				return nil, cli.InternalError{Err: err}
			}
			if reach == policy.Never {
				continue
			}
		}
		tools = append(tools, grammar.Tool{Name: entry.Name(), Schema: entry.ClosedSchema()})
	}
	return tools, nil
}
