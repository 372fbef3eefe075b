package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/callgate/callgate/configs/toolservers"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/registry"
)

// maxPlaces bounds for how many agents in projects an answer says which tools they may use.
const maxPlaces = 100

// Tools is a page of tools, sorted by name and version.
type Tools struct {
	Tools []Tool `json:"tools"`
	Next  uint64 `json:"next,omitempty"` // the parameter after of the next page
	Total int    `json:"total"`
	// Places are the agents and where they act, in the order of Reach; Omitted counts those
	// beyond the first hundred.
	Places  []Place `json:"places"`
	Omitted int     `json:"omitted,omitempty"`
}

// Place is an agent in a project.
type Place struct {
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Project   string `json:"project"`
}

// Tool is one version of a tool.
type Tool struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Effect      string `json:"effect"` // read, idempotent or once
	Run         string `json:"run"`    // the type of its transport
	Server      string `json:"server,omitempty"`
	// Quarantined: it may not be called until an operator has accepted its definition.
	Quarantined bool `json:"quarantined"`
	Secrets     bool `json:"secrets"` // some arguments are secret
	// Reach is for each place whether the agent could ever use the tool there: never, on
	// conditions or always.
	Reach []string `json:"reach"`
}

// ToolVersions are the definitions of one tool.
type ToolVersions struct {
	Name     string       `json:"name"`
	Versions []Definition `json:"versions"` // the highest last: a call of the name alone means it
	Places   []Place      `json:"places"`
	Omitted  int          `json:"omitted,omitempty"`
	// Differences say of each version that its server defines otherwise what differs.
	Differences []toolservers.Difference `json:"differences"`
}

// Definition is a tool with its schemas.
type Definition struct {
	Tool
	InputSchema  json.RawMessage `json:"input_schema"` // as it was written
	ClosedSchema json.RawMessage `json:"closed_schema"`
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
}

// placesOf lists the agents of projects, sorted.
func placesOf(c *gateway.Config) (places []Place, omitted int) {
	places = []Place{}
	for workspace, in := range c.Workspaces {
		for project, p := range in.Projects {
			for _, agent := range p.Agents {
				places = append(places, Place{agent, workspace, project})
			}
		}
	}
	slices.SortFunc(places, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Workspace, b.Workspace), cmp.Compare(a.Project, b.Project))
	})
	omitted = max(0, len(places)-maxPlaces)
	return places[:len(places)-omitted], omitted
}

// toolOf describes a tool.
func (s *Sources) toolOf(c *gateway.Config, entry *registry.Entry, places []Place) (Tool, error) {
	run := entry.SharedRun()
	t := Tool{
		Name: entry.Name(), Version: entry.Version(), Description: entry.Description(), Effect: entry.Effect(), Run: run.Type,
		Server:      run.Server,
		Quarantined: s.Kernel.Quarantined(entry.Name(), entry.Version()), Secrets: entry.HasSecrets(), Reach: make([]string, len(places)),
	}
	for i, p := range places {
		reach, err := c.Policy.Reach(p.Agent, p.Workspace, p.Project, entry.Name())
		if err != nil {
			return t, err
		}
		t.Reach[i] = reach.String()
	}
	return t, nil
}

// tools answers GET /v1/tools.
func (s *Sources) tools(r *Request) (any, error) {
	limit, after, err := r.page("after")
	if err != nil {
		return nil, err
	}
	config := s.Kernel.Config()
	entries := config.Tools.Entries()
	answer := Tools{Tools: []Tool{}, Total: len(entries)}
	answer.Places, answer.Omitted = placesOf(config)
	from := min(after, uint64(len(entries)))
	to := min(from+uint64(limit), uint64(len(entries)))
	for _, entry := range entries[from:to] {
		t, err := s.toolOf(config, entry, answer.Places)
		if err != nil {
			return nil, err
		}
		answer.Tools = append(answer.Tools, t)
	}
	if to < uint64(len(entries)) {
		answer.Next = to
	}
	return answer, nil
}

// tool answers GET /v1/tools/{name}.
func (s *Sources) tool(r *Request) (any, error) {
	config := s.Kernel.Config()
	answer := ToolVersions{Name: r.PathValue("name"), Versions: []Definition{}, Differences: []toolservers.Difference{}}
	answer.Places, answer.Omitted = placesOf(config)
	for _, entry := range config.Tools.Entries() {
		if entry.Name() != answer.Name {
			continue
		}
		t, err := s.toolOf(config, entry, answer.Places)
		if err != nil {
			return nil, err
		}
		answer.Versions = append(answer.Versions, Definition{t, entry.InputSchema(), entry.ClosedSchema(), entry.OutputSchema()})
	}
	if len(answer.Versions) == 0 {
		return nil, refusal.New(refusal.NotFound, "The configuration in force has no such tool.")
	}
	answer.Differences = append(answer.Differences, s.Differences(answer.Name)...)
	return answer, nil
}

// CheckRequest is a completion to judge. An absent member has the configuration's default.
type CheckRequest struct {
	Completion   string `json:"completion"`
	Agent        string `json:"agent,omitempty"`
	Workspace    string `json:"workspace,omitempty"`
	Project      string `json:"project,omitempty"`
	FinishReason string `json:"finish_reason,omitempty"`
}

// check answers POST /v1/check.
func (s *Sources) check(r *Request) (any, error) {
	var decoded CheckRequest
	if err := r.Decode(&decoded); err != nil {
		return nil, err
	}
	return s.judge(r.Context(), decoded), nil
}

func (s *Sources) judge(ctx context.Context, request CheckRequest) gateway.Report {
	return s.Kernel.Preview(ctx, gateway.Request{
		Subject: gateway.Subject{Agent: request.Agent, Workspace: request.Workspace, Project: request.Project},
		Inputs:  []gateway.Input{{Completion: []byte(request.Completion), Truncated: parser.Truncates(request.FinishReason)}},
	})
}

// run answers GET /v1/runs/{id}, for the runs of all principals.
func (s *Sources) run(r *Request) (any, error) {
	found := s.Runs.FindAny(r.PathValue("id"))
	if found == nil {
		return nil, refusal.New(refusal.NotFound, "This gateway keeps no such run. Runs are kept in memory, for an hour at most.")
	}
	return *found, nil
}
