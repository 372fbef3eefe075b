package gateway

import (
	"sync/atomic"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/registry"
)

// places are the projects of one configuration as the places where agents act: a request looks its own
// up once (Resolve), and what an agent could ever use there is computed once (Reach). They are safe for
// concurrent use.
type places struct {
	workspaces policy.Workspaces
	policy     *policy.Policy
	tools      int // in the registry
	of         map[Subject]*place
	ofAgent    map[string][]Subject // the keys of of, by their agents
	words      atomic.Int64         // of kept answers
}

// place is a project for one of its agents.
type place struct {
	project *policy.Project
	reaches atomic.Pointer[[]atomic.Uint32] // a few bits for each tool: see Reach
}

// newPlaces returns the places of workspaces, for a policy and a number of tools.
func newPlaces(workspaces policy.Workspaces, rows *policy.Policy, tools int) *places {
	p := &places{workspaces: workspaces, policy: rows, tools: tools, of: placesOf(workspaces), ofAgent: map[string][]Subject{}}
	for at := range p.of {
		p.ofAgent[at.Agent] = append(p.ofAgent[at.Agent], at)
	}
	return p
}

// choose fills in what a request does not name, where no credentials are required. Where the agent does not act in the
// place that was filled in, it is the only one where the agent acts and that is as the request says. If there are
// several, what the request does not name of the place is empty.
func (p *places) choose(named, others Subject) Subject {
	chosen := named.or(others)
	if p.of[chosen] != nil || named.Workspace != "" && named.Project != "" {
		return chosen
	}
	var acts []Subject
	for _, at := range p.ofAgent[chosen.Agent] {
		if (named.Workspace == "" || named.Workspace == at.Workspace) && (named.Project == "" || named.Project == at.Project) {
			acts = append(acts, at)
		}
	}
	switch {
	case len(acts) == 1:
		return acts[0]
	case len(acts) > 1 && named.Project == "":
		chosen.Workspace, chosen.Project = named.Workspace, ""
	}
	return chosen
}

// maxReaches bounds the answers that one configuration keeps, in words: 16 MiB.
const (
	answersPerWord = 8
	bitsPerAnswer  = 32 / answersPerWord
	maxReaches     = 4 << 20
)

// placesOf are the projects of each agent, by who acts where.
func placesOf(all policy.Workspaces) map[Subject]*place {
	found := map[Subject]*place{}
	for workspace, in := range all {
		for name, project := range in.Projects {
			for _, agent := range project.Agents {
				if p, err := all.Project(agent, workspace, name); err == nil {
					found[Subject{agent, workspace, name}] = &place{project: p}
				}
			}
		}
	}
	return found
}

// ReachByName tells whether an agent could ever use a tool in a workspace and project.
func (p *places) ReachByName(of Subject, tool string) (policy.Reach, error) {
	return p.policy.Reach(of.Agent, of.Workspace, of.Project, tool)
}

// Reach is ReachByName for a tool of the configuration, in the scope of that subject. The policy of a
// configuration does not change, so its answers are kept by the tool's number: 0 where there is none
// yet, or one more than the answer. A tool that a request brings has no number.
func (p *places) Reach(in *scope, of Subject, tool *registry.Entry) (policy.Reach, error) {
	at := in.place
	if at == nil || tool.Index() < 0 {
		return p.ReachByName(of, tool.Name())
	}
	word, shift := tool.Index()/answersPerWord, bitsPerAnswer*(tool.Index()%answersPerWord)
	words := at.reaches.Load()
	if words != nil {
		if kept := (*words)[word].Load() >> shift & (1<<bitsPerAnswer - 1); kept > 0 {
			return policy.Reach(kept - 1), nil
		}
	}
	reach, err := p.ReachByName(of, tool.Name())
	if err != nil {
		return reach, err
	}
	if words == nil {
		words = p.addReaches(at)
	}
	if words != nil {
		(*words)[word].Or(uint32(reach+1) << shift)
	}
	return reach, nil
}

// addReaches makes room for the answers of a place; nil where the configuration has too many.
func (p *places) addReaches(at *place) *[]atomic.Uint32 {
	count := (p.tools + answersPerWord - 1) / answersPerWord
	if p.words.Add(int64(count)) > maxReaches {
		p.words.Add(-int64(count))
		return nil
	}
	words := make([]atomic.Uint32, count)
	if !at.reaches.CompareAndSwap(nil, &words) {
		p.words.Add(-int64(count))
	}
	return at.reaches.Load()
}
