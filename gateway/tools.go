package gateway

import (
	"context"
	"encoding/json"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// Tool is a tool as an agent may see it.
type Tool struct {
	Name        string          `json:"name"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
	// Wire is the name in OpenAI's alphabet, ID that in OXP's, Effect read, idempotent or once, and Run
	// how it is run.
	Wire   string `json:"-"`
	ID     string `json:"-"`
	Effect string `json:"-"`
	Run    string `json:"-"`
	// Method is what a tool of type acp asks of the client of a session; empty of any other tool.
	Method string `json:"-"`
	// Client says that the application runs the tool, or the client of an ACP session (then Run is
	// acp), and not Callgate.
	Client bool `json:"-"`
	// AuthoredSchema is the input schema in its author's words, closed; OutputSchema is the
	// schema of results, as it was written, or nil.
	AuthoredSchema json.RawMessage `json:"-"`
	OutputSchema   json.RawMessage `json:"-"`
}

// Tools lists what an agent may use: each tool in the version that a call of its
// name means, with the closed schema that a call is judged by.
func (k *Kernel) Tools(ctx context.Context, request Request) ([]Tool, error) {
	c, err := k.admitRequest(ctx, request, nil)
	if err != nil {
		return nil, err
	}
	return c.tools()
}

// tools lists the tools that the agent may use in its project.
func (c *judgement) tools() ([]Tool, error) {
	if c.subject.Agent == "" {
		return nil, refusal.New(refusal.AgentRequired, "The caller may act for several agents and did not name one; "+nameAgent)
	}
	if c.namesNoProject() {
		return nil, refuseNoProject("which tools it may use is not known")
	}
	tools := []Tool{}
	for _, entry := range c.config.Tools.Entries() {
		if meant, _ := c.config.Tools.Lookup(entry.Name()); meant != entry {
			continue
		}
		may, err := c.mayShow(entry)
		if err != nil {
			return nil, refusal.From(refusal.Permission, err)
		}
		if may {
			tools = append(tools, c.toolView(entry))
		}
	}
	return tools, nil
}

// mayShow reports whether the agent may be shown a tool. In a workspace or a project that
// is not its caller's, it is shown no tools.
func (c *judgement) mayShow(entry *registry.Entry) (bool, error) {
	if c.outsidePrincipal() {
		return false, nil
	}
	reach, err := c.reachOf(entry)
	return err == nil && reach != policy.Never && !c.kernel.quarantined(entry.Name()), err
}

// toolView is the description of a tool for an agent.
func (c *judgement) toolView(entry *registry.Entry) Tool {
	wire, _ := c.config.openAINames.Wire(entry.Name())
	id, _ := c.config.oxpNames.Wire(entry.Name())
	run, method := entry.SharedRun().Type, ""
	if run == registry.RunACP {
		method = entry.SharedRun().Tool
	}
	return Tool{
		Name: entry.Name(), Version: entry.Version(), Description: entry.Description(), InputSchema: entry.ClosedSchema(),
		Wire: wire, ID: id, Effect: entry.Effect(), Run: run, Method: method, Client: run == "client" || run == registry.RunACP,
		AuthoredSchema: entry.AuthoredSchema(), OutputSchema: entry.OutputSchema(),
	}
}
