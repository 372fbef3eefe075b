package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/callgate/callgate/configs"
	"github.com/callgate/callgate/internal/cli"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/registry"
)

func newToolsGrammar(e env) *cobra.Command {
	var format, agent, project string
	var only []string
	var native bool
	c := e.WithConfig(&cobra.Command{
		Use:   "grammar [--agent A] [--project W/P] [--native]",
		Short: "Print the JSON Schema of the accepted calls, for engines that constrain sampling",
		Long: `Print the JSON Schema of the accepted calls, for engines that constrain sampling (llama-server,
vLLM, SGLang, Ollama), so that a model can write no other.

--agent limits it to tools that the policy ever allows the agent in the project, also where
people are asked or a condition decides; a call may name the agent. --native describes
{"name":…,"arguments":…} with the names of model APIs (web_search for web.search), instead of
a completion, {"tool":{"name":…,"arguments":…}}.

Not expressed: conditions, limits, boundaries, repeated members, length of numbers, depth of
nesting. They are checked when the call is made.`,
		Example: `  callgate tools grammar --agent Intern --project acme/alpha --native > calls.json`,
		Args:    cobra.NoArgs,
	}, func(_ context.Context, loaded *configs.Config, _ []string) error {
		if format != "json-schema" {
			return fmt.Errorf("found the format %q; expected json-schema, which llama-server, vLLM, SGLang and Ollama take", format)
		}
		form := registry.CallForm{Agent: agent, AgentRequired: loaded.AgentRequired}
		if agent == "" && form.AgentRequired && !native {
			return errors.New("each call must name its agent here (output.agent: required): add --agent")
		}
		tools, err := grammarTools(loaded, agent, project, only)
		if err != nil {
			return err
		}
		if native {
			names := make([]string, len(tools))
			for i, t := range tools {
				names[i] = t.Name()
			}
			if form.Names, err = registry.NewNameMap(names, registry.OpenAI()); err != nil {
				return err
			}
		}
		schema, err := registry.CallSchema(tools, form)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := json.Indent(&b, schema, "", "  "); err != nil {
			return err
		}
		fmt.Fprintln(e.Stdout, b.String())
		return nil
	})
	c.Flags().StringVar(&format, "format", "json-schema", "the `NOTATION`: json-schema")
	c.Flags().StringVar(&agent, "agent", "", "the `AGENT` whose calls these are (default: all tools)")
	c.Flags().StringVar(&project, "project", "", "the `WORKSPACE/PROJECT` (default: the configuration's)")
	c.Flags().StringArrayVar(&only, "tool", nil, "only this `TOOL` (repeatable)")
	c.Flags().BoolVar(&native, "native", false, "describe the bare call of a model API")
	return c
}

// grammarTools lists the tools that an agent may ever use; all of them without an agent.
func grammarTools(c *configs.Config, agent, project string, only []string) ([]*registry.Entry, error) {
	for _, name := range only {
		if _, known := c.Tools.Lookup(name); !known {
			return nil, fmt.Errorf("--tool: there is no tool %q", name)
		}
	}
	request, err := requestIn(c, agent, project)
	if err != nil {
		return nil, err
	}
	if agent != "" {
		if _, err := c.Workspaces.Project(agent, request.Workspace, request.Project); err != nil {
			return nil, fmt.Errorf("agent %q, project %s/%s: %w", agent, request.Workspace, request.Project, err)
		}
	}
	var tools []*registry.Entry
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
		tools = append(tools, entry)
	}
	return tools, nil
}
