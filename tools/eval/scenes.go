package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
	"github.com/callgate/callgate/tool"
)

// scenes are by name what a case can meet. It is read only.
var scenes = map[string]func(*scene) error{
	"rate_spent":    spentRate,
	"slots_taken":   takenSlots,
	"limiter_away":  func(s *scene) error { s.deps.Limiter = nil; return nil },
	"log_full":      func(s *scene) error { s.deps.Journal = full{}; return nil },
	"store_away":    func(s *scene) error { s.deps.Store = nil; return nil },
	"tool_changed":  changedTool,
	"tool_starting": startingTool,
	"other_chosen":  otherChosen,
	"rows_for_all":  func(s *scene) error { return s.setPolicy("allow") },
	"no_project":    severalProjects,
	"keys_hooked":   func(s *scene) error { s.config.Hooks = keyHooks(); return nil },
	"people_asked":  askPeople,
	"asked_twice":   func(s *scene) error { s.repeats = 1; return askPeople(s) },
	"people_denied": deniedByPeople,
	"people_silent": unansweredPeople,
	"people_busy":   func(s *scene) error { s.deps.Approvals = crowded{s.deps.Approvals}; return askPeople(s) },

	"tool_silent":   inPlaceOf("/silent", tool.Run{Timeout: 50 * time.Millisecond}),
	"tool_hangs_up": inPlaceOf("/hangs-up", tool.Run{}),
	"tool_away":     inPlaceOf("/away", tool.Run{}),
	"tool_blocked":  inPlaceOf("/", tool.Run{Addresses: []string{"192.0.2.0/24"}}),
	"tool_refuses":  inPlaceOf("/refuses", tool.Run{}),
	"tool_fails":    inPlaceOf("/fails", tool.Run{}),
	"tool_mumbles":  inPlaceOf("/mumbles", tool.Run{}),
	"tool_rambles":  inPlaceOf("/rambles", tool.Run{MaxResultBytes: 64}),
	"engine_panics": func(s *scene) error { s.run = func(tool.Call) tool.Run { panic("of a scene") }; return nil },
}

// spentRate has one call a minute, which was made.
func spentRate(s *scene) error {
	rate, err := ratelimit.ParseRate("1/m")
	s.config.Limits.Default.Budget = &ratelimit.Budget{Rate: rate, Burst: 1}
	s.opens = func(ctx context.Context, s *scene, c *Case) error {
		lease, err := s.deps.Limiter.Take(ctx, s.config.Limits, ratelimit.Key{Agent: s.agent, Tool: c.Intent.Tool})
		lease.Release()
		return err
	}
	return err
}

// takenSlots has one call at the same time, which runs until a model waits.
func takenSlots(s *scene) error {
	one := 1
	s.config.Limits.Default.Concurrency = &one
	s.opens = func(ctx context.Context, s *scene, c *Case) error {
		lease, err := s.deps.Limiter.Take(ctx, s.config.Limits, ratelimit.Key{Agent: s.agent, Tool: c.Intent.Tool})
		s.waits = lease.Release
		return err
	}
	return nil
}

// changedTool has the tool in quarantine.
func changedTool(s *scene) error {
	s.opens = func(_ context.Context, s *scene, c *Case) error {
		s.executor.Kernel.Quarantine(map[string]bool{c.Intent.Tool: true})
		return nil
	}
	return nil
}

// startingTool has the tool's server listed its tools once a model has waited.
func startingTool(s *scene) error {
	s.opens = func(_ context.Context, s *scene, c *Case) error {
		s.executor.Kernel.Starting(map[string]time.Duration{c.Intent.Tool: 0})
		s.waits = func() { s.executor.Kernel.Starting(nil) }
		return nil
	}
	return nil
}

// otherChosen has a request whose tool_choice names another tool.
func otherChosen(s *scene) error {
	const other = "time.now"
	s.constraints = gateway.Constraints{OnlyTools: []string{other}, RefuseOther: turns.RefuseOtherTools(other)}
	return nil
}

// severalProjects has a caller of several projects.
func severalProjects(s *scene) error {
	d := s.config.Defaults
	s.config.Identity = everybody{&identity.Principal{Name: "caller", Agents: []string{s.agent}, Workspace: d.Workspace,
		Projects: []string{d.Project, "other"}}}
	return nil
}

// everybody is one principal, by any credential.
type everybody struct{ *identity.Principal }

// Authenticate returns the principal.
func (e everybody) Authenticate(string) *identity.Principal { return e.Principal }

// keyHooks are hooks that let no access key of AWS pass.
func keyHooks() *hook.Set {
	return hook.NewSet([]*hook.Hook{{Name: "keys", At: []hook.Point{hook.Call}, Patterns: hook.Builtin("aws-access-key"),
		OnMatch: hook.Deny, MaxBytes: 1 << 20}})
}

// rule is that by which people are asked in scenes.
const rule = "review"

// askPeople has a policy that asks people for each call.
func askPeople(s *scene) error {
	s.config.Approvals = approval.Rules{rule: {Name: rule, Approve: 1, Within: time.Hour, By: approval.ByApprovers}}
	s.config.People = func(approval.Vote) approval.Voter { return approval.Voter{Approves: []string{rule}} }
	return s.setPolicy("ask:" + rule)
}

// deniedByPeople has people who were asked for the first completion, and said no.
func deniedByPeople(s *scene) error {
	s.opens = func(ctx context.Context, s *scene, c *Case) error {
		if err := s.ask(ctx, c); err != nil {
			return err
		}
		desk := s.executor.Desk()
		waiting, err := desk.Get(ctx, s.approvalID)
		if err == nil {
			_, err = desk.Vote(ctx, approval.Voter{Approves: []string{rule}}, waiting.ID,
				approvals.Ballot{Digest: waiting.Digest, Reason: "not before the audit"})
		}
		return err
	}
	return askPeople(s)
}

// unansweredPeople has people who were asked for the first completion, and said nothing in time.
func unansweredPeople(s *scene) error {
	s.opens = func(ctx context.Context, s *scene, c *Case) error {
		err := s.ask(ctx, c)
		s.approval = s.approvalID
		s.later += 2 * s.config.Approvals[rule].Within
		return err
	}
	return askPeople(s)
}

// inPlaceOf runs tools as run says, at a path of the scene's own server.
func inPlaceOf(path string, run tool.Run) func(*scene) error {
	return func(s *scene) (err error) {
		if s.server, err = newToolServer(); err != nil {
			return err
		}
		here := run
		here.Type, here.URL = "http", s.server.url+path
		if here.Addresses == nil {
			here.Addresses = []string{"127.0.0.1"}
		}
		s.run = func(tool.Call) tool.Run { return here }
		return nil
	}
}

// forgetful is a log that keeps nothing.
type forgetful struct{}

// Append takes a record.
func (forgetful) Append(context.Context, audit.Record) error { return nil }

// full is a log that has no room for a decision about a call.
type full struct{}

// Append takes the records of texts and of refused calls alone.
func (full) Append(_ context.Context, r audit.Record) error {
	if r.Event == audit.Decision && r.Verdict == audit.ToolCall {
		return refuse.Unrecorded(errors.New("no space is left"))
	}
	return nil
}

// crowded is a store in which too many approvals wait.
type crowded struct{ kept }

type kept interface{ store.Approvals }

// Ask keeps nothing.
func (crowded) Ask(_ context.Context, a approval.Approval) (approval.Approval, bool, error) {
	return a, false, store.ErrFull
}

// Scenes lists the names that a case may have as its scene, sorted.
func Scenes() []string { return slices.Sorted(maps.Keys(scenes)) }

// newScene opens the scene of a case. Close it.
func (j *Judge) newScene(ctx context.Context, c *Case) (*scene, error) {
	if j.engine == nil {
		return nil, fmt.Errorf("the case %q needs an engine", c.Name)
	}
	config := j.configOf(c)
	config.Limits = &ratelimit.Limits{Replicas: 1}
	s := &scene{config: *config, agent: cmp.Or(c.Agent, config.Defaults.Agent), engine: j.engine()}
	kept := store.NewMemory(s.now)
	s.deps = calls.Deps{
		Deps:  gateway.Deps{Limiter: ratelimit.NewLocal(s.now), Journal: forgetful{}, Now: s.now},
		Store: kept, Approvals: kept, Node: "eval", Engine: sceneEngine{s},
	}
	err := scenes[c.Scene](s)
	if err == nil {
		s.executor, err = calls.New(&s.config, s.deps)
	}
	if err == nil && s.opens != nil {
		err = s.opens(ctx, s, c)
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("the scene %s: %w", c.Scene, err)
	}
	return s, nil
}
