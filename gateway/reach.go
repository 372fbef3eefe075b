package gateway

import (
	"sync/atomic"

	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/registry"
)

// place is a project for one of its agents: what is found by the subject of a call.
type place struct {
	project *policy.Project
	reaches atomic.Pointer[[]atomic.Uint32] // a few bits for each tool: see reachOf
}

// maxReaches bounds the answers that one configuration keeps, in words: 16 MiB.
const (
	answersPerWord = 8
	bitsPerAnswer  = 32 / answersPerWord
	maxReaches     = 4 << 20
)

// placesOf are the projects of each agent, by the subjects that act in them.
func placesOf(all policy.Workspaces) map[Subject]*place {
	places := map[Subject]*place{}
	for workspace, in := range all {
		for name, project := range in.Projects {
			for _, agent := range project.Agents {
				if found, err := all.Project(agent, workspace, name); err == nil {
					places[Subject{agent, workspace, name}] = &place{project: found}
				}
			}
		}
	}
	return places
}

// reach tells whether the agent could ever use a tool in the workspace and project of the
// call.
func (c *judgement) reach(tool string) (policy.Reach, error) {
	return c.config.Policy.Reach(c.subject.Agent, c.subject.Workspace, c.subject.Project, tool)
}

// canReach reports whether the agent could ever use a tool.
func (c *judgement) canReach(tool string) (bool, error) {
	reach, err := c.reach(tool)
	return err == nil && reach != policy.Never, err
}

// reachOf is reach for a tool of the configuration. The policy of a configuration does not
// change, so its answers are kept by the tool's number: 0 where there is none yet, or one
// more than the answer. A tool that a request brings has no number.
func (c *judgement) reachOf(tool *registry.Entry) (policy.Reach, error) {
	p := c.scope.place
	if p == nil || tool.Index() < 0 {
		return c.reach(tool.Name())
	}
	word, shift := tool.Index()/answersPerWord, bitsPerAnswer*(tool.Index()%answersPerWord)
	words := p.reaches.Load()
	if words != nil {
		if kept := (*words)[word].Load() >> shift & (1<<bitsPerAnswer - 1); kept > 0 {
			return policy.Reach(kept - 1), nil
		}
	}
	reach, err := c.reach(tool.Name())
	if err != nil {
		return reach, err
	}
	if words == nil {
		words = c.config.addReaches(p)
	}
	if words != nil {
		(*words)[word].Or(uint32(reach+1) << shift)
	}
	return reach, nil
}

// addReaches makes room for the answers of a place; nil where the configuration has too many.
func (s *Config) addReaches(p *place) *[]atomic.Uint32 {
	count := (s.Tools.Len() + answersPerWord - 1) / answersPerWord
	if s.reaches.Add(int64(count)) > maxReaches {
		s.reaches.Add(-int64(count))
		return nil
	}
	words := make([]atomic.Uint32, count)
	if !p.reaches.CompareAndSwap(nil, &words) {
		s.reaches.Add(-int64(count))
	}
	return p.reaches.Load()
}
