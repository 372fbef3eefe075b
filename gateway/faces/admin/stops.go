package admin

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/stops"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/similar"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Stops are the endpoints by which operators stop what must not begin any more, and resume it.
type Stops struct {
	Desk   *stops.Desk
	Kernel *gateway.Kernel
	// Running passes the calls that were dispatched and have no outcome to do.
	Running func(ctx context.Context, do func(*store.Call) (more bool)) error
	// BringsTools reports whether requests may bring tools that are not registered; nil: none may.
	BringsTools func() bool
}

// StopBody is what is to be stopped: all calls that agree with each member that is there.
type StopBody struct {
	Principal string `json:"principal,omitempty"`
	Agent     string `json:"agent,omitempty"`
	Workspace string `json:"workspace,omitempty"`
	Project   string `json:"project,omitempty"` // of the workspace
	Tool      string `json:"tool,omitempty"`    // a name, or all below one, such as github.*
	Thread    string `json:"thread,omitempty"`  // and those that came from it
	// Everything stops all calls. Without it, something must be named.
	Everything bool   `json:"everything,omitempty"`
	Reason     string `json:"reason"`        // for operators; no caller or model reads it
	For        string `json:"for,omitempty"` // such as 1h; absent: until it is resumed
}

// StopAnswer says what a stop or a resumption has done.
type StopAnswer struct {
	Stop store.Stop `json:"stop"`
	// Scope is "this gateway alone", or "all gateways": those that keep calls or limits on the same Redis. Of them
	// Confirmed have said that it is so there, and Missing have not, though they live.
	Scope     string          `json:"scope"`
	Confirmed []stops.Gateway `json:"confirmed"`
	Missing   []stops.Gateway `json:"missing"`
	// InFlight are calls that the stop covers and does not end, since they had been dispatched: at most 500.
	InFlight []RunningCall `json:"in_flight"`
	Problems []string      `json:"problems"` // what else an operator must know
	// Unknown are the members of the stop whose names the gateway's configuration does not have: it is made, and
	// matches nothing now.
	Unknown []string `json:"unknown,omitempty"`
}

// StopList are the stops that have not ended, the oldest first.
type StopList struct {
	Stops   []store.Stop `json:"stops"`
	Scope   string       `json:"scope"`
	Problem string       `json:"problem,omitempty"` // why the stops of other gateways are not known here
}

// Endpoints are those of stops.
func (s *Stops) Endpoints() []Endpoint {
	return []Endpoint{
		{Method: http.MethodGet, Path: "/v1/stops", Summary: "What operators have stopped", Answer: StopList{}, Serve: s.list},
		{Method: http.MethodPost, Path: "/v1/stops", Summary: "Stops calls and requests to models, at once", Body: StopBody{},
			Answer: StopAnswer{}, Serve: s.stop},
		{Method: http.MethodDelete, Path: "/v1/stops/{id}", Summary: "Resumes what was stopped", Answer: StopAnswer{}, Serve: s.resume},
	}
}

// Where a stop is in force.
const (
	ScopeAlone = "this gateway alone"
	ScopeAll   = "all gateways" // that keep calls or limits on the same Redis
)

func (s *Stops) scope() string {
	if s.Desk.Alone() {
		return ScopeAlone
	}
	return ScopeAll
}

func (s *Stops) list(*Request) (any, error) {
	return StopList{Stops: append([]store.Stop{}, s.Desk.Active()...), Scope: s.scope(), Problem: s.Desk.Problem()}, nil
}

func (s *Stops) stop(r *Request) (any, error) {
	var body StopBody
	if err := r.Decode(&body); err != nil {
		return nil, err
	}
	stop := store.Stop{
		Principal: body.Principal, Agent: body.Agent, Workspace: body.Workspace, Project: body.Project, Tool: body.Tool,
		Thread: body.Thread,
		Reason: body.Reason, By: r.Caller.Name,
	}
	everything := stop.Covers(&store.StopTarget{})
	if everything != body.Everything {
		return nil, bad(
			"Name what is to be stopped (principal, agent, workspace, project, tool, thread), or say \"everything\": true, and not both.")
	}
	if body.For != "" {
		span, ok := duration.Read(body.For)
		if !ok || span <= 0 {
			return nil, bad("The member for must be " + duration.Expected + ".")
		}
		stop.Until = time.Now().Add(span).UTC().Truncate(time.Millisecond)
	}
	act, err := s.Desk.Stop(r.Context(), stop)
	if err != nil {
		return nil, err
	}
	answer := s.answer(&act)
	s.addUnknown(&answer)
	if answer.InFlight, err = s.inFlight(r.Context(), &act.Stop); err != nil {
		answer.Problems = append(answer.Problems, "What runs still cannot be read now: see GET /v1/calls.")
	}
	return answer, nil
}

func (s *Stops) resume(r *Request) (any, error) {
	act, err := s.Desk.Resume(r.Context(), r.PathValue("id"), r.Caller.Name)
	if err != nil {
		return nil, err
	}
	return s.answer(&act), nil
}

func (s *Stops) answer(a *stops.Act) StopAnswer {
	return StopAnswer{
		Stop: a.Stop, Scope: s.scope(), Confirmed: append([]stops.Gateway{}, a.Confirmed...),
		Missing:  append([]stops.Gateway{}, a.Missing...),
		InFlight: []RunningCall{}, Problems: append([]string{}, a.Problems...),
	}
}

// addUnknown says which names of a stop the configuration in force does not have: they may be mistyped.
func (s *Stops) addUnknown(answer *StopAnswer) {
	c, stop := s.Kernel.Config(), &answer.Stop
	say := func(kind, name string, known bool, hint string) {
		if name != "" && !known {
			answer.Unknown = append(answer.Unknown, kind)
			answer.Problems = append(answer.Problems, fmt.Sprintf("This gateway has no %s %s%s: the stop is recorded, and matches nothing now.",
				kind, name, hint))
		}
	}
	if c.Identity != nil && c.People != nil { // else principals have no names
		at := approval.Vote{By: stop.Principal, Until: time.Now()} // as of one who brings a token
		say("principal", stop.Principal, c.People(at).Principal == stop.Principal, "")
	}
	say("agent", stop.Agent, c.Agents[stop.Agent], similar.DidYouMean(stop.Agent, slices.Sorted(maps.Keys(c.Agents))))
	workspace, known := c.Workspaces[stop.Workspace]
	say("workspace", stop.Workspace, known, similar.DidYouMean(stop.Workspace, slices.Sorted(maps.Keys(c.Workspaces))))
	_, known = workspace.Projects[stop.Project]
	say("project", stop.Project, known, similar.DidYouMean(stop.Project, slices.Sorted(maps.Keys(workspace.Projects))))
	known = s.BringsTools != nil && s.BringsTools()
	for _, entry := range c.Tools.Entries() {
		known = known || (&store.Stop{Tool: stop.Tool}).Covers(&store.StopTarget{Tool: entry.Name()})
	}
	hint := ""
	// Not by typing errors alone: clients show names in smaller alphabets.
	for _, near := range c.Tools.Suggest(stop.Tool, func(string) bool { return true }, 1) {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	say("tool", stop.Tool, known, hint)
}

// inFlight lists the calls that were dispatched and have no outcome, and that a stop covers.
func (s *Stops) inFlight(ctx context.Context, stop *store.Stop) (list []RunningCall, err error) {
	list = []RunningCall{}
	now := time.Now()
	err = s.Running(ctx, func(c *store.Call) bool {
		target := store.StopTarget{Scope: c.Scope, Agent: c.Task.Agent, Tool: c.Task.Tool, Thread: c.Task.Thread}
		if stop.Covers(&target) {
			list = append(list, runningCall(c, now))
		}
		return len(list) < maxLimit
	})
	return list, err
}
