package gateway

import (
	"slices"
	"sync"

	"github.com/callgate/callgate/refusal"
)

// Judged remembers what the last judgement of a request came to, for the request's line in the
// log. It is safe for concurrent use: a judgement may end after its request was answered. The zero
// value has seen none.
type Judged struct {
	mu   sync.Mutex
	last Summary
}

// Summary is one judgement in a few words, of which none is a name that a caller or a model made
// up. Of several calls of an answer it is the one that was refused, or else the first.
type Summary struct {
	Agent   string // empty where the configuration does not know it
	Tool    string // empty where there is no call, or the registry does not have its tool
	Verdict Verdict
	Code    refusal.Code // where it was refused
}

// Last returns the last judgement.
func (j *Judged) Last() Summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.last
}

// Set remembers a judgement.
func (j *Judged) Set(s Summary) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = s
}

// note remembers a decision.
func (j *Judged) note(d *Decision, refused *refusal.Error) {
	of := d.calls[0]
	if refused != nil {
		for _, c := range d.calls {
			if c.refused == refused {
				of = c
			}
		}
	}
	s := Summary{Verdict: VerdictCall}
	s.Agent, s.Tool = of.KnownNames()
	switch {
	case refused != nil:
		s.Verdict, s.Code = VerdictRefused, refused.Code
	case d.Reports[0].Verdict == VerdictText:
		s.Verdict = VerdictText
	}
	j.Set(s)
}

// KnownNames returns the agent and the tool of the call; empty where the configuration does not
// know the agent, there is no tool, or the registry does not have it.
func (c *Call) KnownNames() (agent, tool string) {
	if c.config.Agents[c.subject.Agent] {
		agent = c.subject.Agent
	}
	entry := c.tool
	if entry == nil && c.parsed.HasName {
		entry, _ = c.config.Tools.Lookup(c.parsed.Name)
	}
	if entry != nil && entry.Index() >= 0 {
		tool = entry.Name()
	}
	return agent, tool
}

// actsFor reports whether the caller may act for an agent.
func (c *judgement) actsFor(agent string) bool {
	return c.config.Identity == nil || c.principal != nil && slices.Contains(c.principal.Agents, agent)
}
