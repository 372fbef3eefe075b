package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/store/approval"
)

// Approvals are the endpoints by which people decide calls that ask them.
type Approvals struct {
	Desk   *approvals.Desk
	Kernel *gateway.Kernel
	Log    *audit.Log // in which earlier approvals are found; nil: none are
	// EarlierTime bounds the search for them; what it does not find is not shown. 0 is 200 ms.
	EarlierTime time.Duration
}

// ApprovalView is an approval, as those see it who may decide it.
type ApprovalView struct {
	ID          string          `json:"id"`
	URL         string          `json:"url,omitempty"` // where people decide it, by the key url of approvals.yaml
	State       approval.State  `json:"state"`
	Digest      string          `json:"digest"` // names what is shown; a vote must send it
	Rules       []string        `json:"rules"`
	Rows        []string        `json:"rows"` // of the policy, as file:line, without folders
	Hints       []string        `json:"hints"`
	Principal   string          `json:"principal"`
	Agent       string          `json:"agent"`
	User        string          `json:"user"`
	Thread      string          `json:"thread"`
	Workspace   string          `json:"workspace"`
	Project     string          `json:"project"`
	Tool        string          `json:"tool"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Effect      string          `json:"effect"`
	Arguments   json.RawMessage `json:"arguments,omitempty"` // secrets redacted; deleted once it has ended
	Opened      time.Time       `json:"opened"`
	Until       time.Time       `json:"until"`
	Needs       []NeedView      `json:"needs"` // one for each rule
	Votes       []VoteView      `json:"votes"`
	Ended       *EndView        `json:"ended,omitempty"` // that somebody ended it
	Ran         string          `json:"ran"`             // the call that ran by it
	MayVote     bool            `json:"may_vote"`
	WhyNot      string          `json:"why_not"`
	// MayRemember is how long a yes of the caller may stand at most, by scope.
	MayRemember []RememberBody `json:"may_remember"`
	// Earlier are the last approvals of the same agent and tool, in the answer for one approval.
	Earlier []EarlierApproval `json:"earlier,omitempty"`
}

// NeedView is how many people must say yes by a rule, as the configuration in force has it; 0:
// it does not have the rule. Met says that enough did; Yes counts them.
type NeedView struct {
	Rule   string `json:"rule"`
	People int    `json:"approve"`
	Met    bool   `json:"met"`
	Yes    int    `json:"yes"`
}

// EndView is how an approval was ended: denied, withdrawn, revoked or expired.
type EndView struct {
	End    approval.End `json:"end"`
	By     string       `json:"by"`
	At     time.Time    `json:"at"`
	Reason string       `json:"reason"`
}

// VoteView is the vote of one person.
type VoteView struct {
	By     string    `json:"by"`
	Vote   string    `json:"vote"` // yes or no
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
	// Until is until when the vote counts, of a voter with a token.
	Until time.Time `json:"until,omitzero"`
}

// shortArguments is how long the arguments in a list are that asks for short ones, in bytes: to be redacted, each is decoded.
const shortArguments = 1024

// ApprovalList is a page of approvals. Pages follow the order of ids; on a page, those that wait for the caller are
// first, then those that wait for others, each kind in the order in which they were asked for.
type ApprovalList struct {
	Approvals []ApprovalView `json:"approvals"`
	Next      string         `json:"next"` // the parameter after of the next page; empty: there is none
}

// VoteBody is a vote.
type VoteBody struct {
	Vote     string        `json:"vote"` // yes or no
	Digest   string        `json:"digest"`
	Reason   string        `json:"reason"`
	Remember *RememberBody `json:"remember"`
}

// RememberBody offers that a yes stands for more than the one call.
type RememberBody struct {
	Scope string `json:"scope"` // same, thread or tool
	For   string `json:"for"`   // a duration: 2h
}

// GrantView is a yes that stands.
type GrantView struct {
	ID        string    `json:"id"`
	Approval  string    `json:"approval"`
	Rule      string    `json:"rule"`
	Scope     string    `json:"scope"`
	Principal string    `json:"principal"`
	Agent     string    `json:"agent"`
	Tool      string    `json:"tool"`
	Workspace string    `json:"workspace"`
	Project   string    `json:"project"`
	Until     time.Time `json:"until"`
}

// GrantList is a page of grants, in the order of their ids.
type GrantList struct {
	Grants []GrantView `json:"grants"`
	Next   string      `json:"next"`
}

// Endpoints are those of approvals and grants.
func (s *Approvals) Endpoints() []Endpoint {
	page := []Parameter{{Name: "limit", Description: "how many, 1 to 500; 50"}, {Name: "after", Description: "the next of the page before"}}
	return []Endpoint{
		{
			Method: http.MethodGet, Path: "/v1/approvals", Summary: "Approvals that are kept, and whether the caller may decide them",
			Access: Approvers, Answer: ApprovalList{}, Serve: s.list,
			Query: append([]Parameter{{Name: "state", Description: "waiting: only those that can still be decided or used"},
				{Name: "rule", Description: "only those of a rule"},
				{Name: "arguments", Description: "no: without the arguments, which may be long; short: only those of 1,024 bytes at most"}},
				page...),
		},
		{Method: http.MethodGet, Path: "/v1/approvals/{id}", Summary: "One approval", Access: Approvers, Answer: ApprovalView{},
			Serve: s.one},
		{Method: http.MethodPost, Path: "/v1/approvals/{id}", Summary: "Votes on a call", Access: Approvers, Body: VoteBody{},
			Answer: ApprovalView{}, Serve: s.vote},
		{Method: http.MethodDelete, Path: "/v1/approvals/{id}", Summary: "Revokes an approval that has not been used",
			Answer: ApprovalView{}, Serve: s.revoke},
		{Method: http.MethodGet, Path: "/v1/grants", Summary: "Active grants", Query: page, Answer: GrantList{}, Serve: s.grants},
		{Method: http.MethodDelete, Path: "/v1/grants/{id}", Summary: "Revokes a grant", Answer: GrantView{}, Serve: s.revokeGrant},
	}
}

// voter is the caller as a voter. Without credentials everybody may approve by every rule.
func (s *Approvals) voter(c Caller) approval.Voter {
	if c.Name == "" {
		rules, _ := s.Kernel.Approvals()
		return approval.Voter{Approves: slices.Sorted(maps.Keys(rules))}
	}
	return approval.Voter{Principal: c.Name, Subject: identity.Subject(c.Name), Approves: c.Approves, Agents: c.Agents, Until: c.Until}
}

func (s *Approvals) list(r *Request) (any, error) {
	limit, err := r.Limit()
	if err != nil {
		return nil, err
	}
	state, err := r.Choice("state", string(approval.Waiting))
	if err != nil {
		return nil, err
	}
	arguments, err := r.Choice("arguments", "no", "short")
	if err != nil {
		return nil, err
	}
	found, err := s.Desk.List(r.Context(),
		store.ApprovalFilter{Live: state != "", Rule: r.Query("rule"), After: r.Query("after"), Limit: limit})
	if err != nil {
		return nil, err
	}
	answer := ApprovalList{Approvals: []ApprovalView{}}
	if len(found) == limit {
		answer.Next = found[limit-1].ID
	}
	for i := range found {
		if arguments == "no" || arguments == "short" && len(found[i].Arguments) > shortArguments {
			found[i].Arguments = nil
		}
		pending := state == "" || s.Desk.State(&found[i]) != approval.Expired // one that is live may lack a yes that nobody can give any more
		if pending && r.Caller.seesRules(found[i].Rules) {
			answer.Approvals = append(answer.Approvals, s.view(r.Caller, &found[i]))
		}
	}
	slices.SortStableFunc(answer.Approvals, func(a, b ApprovalView) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), a.Opened.Compare(b.Opened))
	})
	return answer, nil
}

// rank orders the approvals of a page: those that wait for the caller, those that wait for others, the rest.
func (v *ApprovalView) rank() int {
	switch {
	case v.State != approval.Waiting:
		return 2
	case v.MayVote:
		return 0
	}
	return 1
}

// get returns an approval that the caller sees.
func (s *Approvals) get(ctx context.Context, r *Request) (approval.Approval, error) {
	a, err := s.Desk.Get(ctx, r.PathValue("id"))
	if err == nil && !r.Caller.seesRules(a.Rules) {
		err = refusal.New(refusal.NotFound, "There is no such approval.")
	}
	return a, err
}

func (s *Approvals) one(r *Request) (any, error) {
	a, err := s.get(r.Context(), r)
	if err != nil {
		return nil, err
	}
	v := s.view(r.Caller, &a)
	v.Earlier, err = s.earlier(r.Context(), r.Caller, &a)
	return v, err
}

func (s *Approvals) vote(r *Request) (any, error) {
	if _, err := s.get(r.Context(), r); err != nil {
		return nil, err
	}
	var body VoteBody
	if err := r.Decode(&body); err != nil {
		return nil, err
	}
	if body.Vote != "yes" && body.Vote != "no" || body.Digest == "" {
		return nil, bad("The member vote must be \"yes\" or \"no\", and digest that of the approval as it was shown.")
	}
	b := approvals.Ballot{Yes: body.Vote == "yes", Digest: body.Digest, Reason: body.Reason}
	if m := body.Remember; m != nil {
		span, ok := duration.Read(m.For)
		if !ok {
			return nil, bad("The member remember.for must be " + duration.Expected + ".")
		}
		b.Remember = approval.Remember{Scope: approval.Scope(m.Scope), For: span}
	}
	a, err := s.Desk.Vote(r.Context(), s.voter(r.Caller), r.PathValue("id"), b)
	if err != nil {
		return nil, err
	}
	s.recount(r.Context())
	return s.view(r.Caller, &a), nil
}

// recount counts what waits after an act, so that the next answer of the status has it.
func (s *Approvals) recount(ctx context.Context) {
	_ = s.Desk.Measure(ctx) // the act has been done; without the store the earlier count stands
}

func (s *Approvals) revoke(r *Request) (any, error) {
	a, err := s.Desk.End(r.Context(), r.PathValue("id"), approval.EndRevoked, r.Caller.Name, "")
	if err != nil {
		return nil, err
	}
	s.recount(r.Context())
	return s.view(r.Caller, &a), nil
}

func (s *Approvals) grants(r *Request) (any, error) {
	limit, err := r.Limit()
	if err != nil {
		return nil, err
	}
	found, err := s.Desk.Grants(r.Context(), r.Query("after"), limit)
	if err != nil {
		return nil, err
	}
	answer := GrantList{Grants: []GrantView{}}
	if len(found) == limit {
		answer.Next = found[limit-1].ID
	}
	for i := range found {
		answer.Grants = append(answer.Grants, grantView(&found[i]))
	}
	return answer, nil
}

func (s *Approvals) revokeGrant(r *Request) (any, error) {
	g, err := s.Desk.RevokeGrant(r.Context(), r.PathValue("id"), r.Caller.Name)
	if err != nil {
		return nil, err
	}
	return grantView(&g), nil
}

func grantView(g *approval.Grant) GrantView {
	return GrantView{g.ID, g.Approval, g.Rule, string(g.Scope), g.Principal, g.Agent, g.Tool, g.Workspace, g.Project, g.Until}
}

// view shows an approval to a caller.
func (s *Approvals) view(c Caller, a *approval.Approval) ApprovalView {
	rules, _ := s.Kernel.Approvals()
	v := ApprovalView{
		ID: a.ID, URL: s.Kernel.ApprovalURL(a.ID), State: s.Desk.State(a), Digest: a.Digest, Rules: a.Rules,
		Rows: append([]string{}, a.Rows...), Hints: []string{},
		Principal: a.Principal, Agent: a.Agent, User: a.User, Thread: a.Thread, Workspace: a.Workspace, Project: a.Project,
		Tool: a.Tool, Version: a.Version, Opened: a.Opened, Until: a.Closes(), Votes: []VoteView{}, Ran: a.Ran,
		Needs: []NeedView{}, MayRemember: []RememberBody{},
	}
	if e := a.Ended; e.End != "" {
		v.Ended = &EndView{e.End, e.By, e.At, e.Reason}
	}
	for _, name := range a.Rules {
		v.Needs = append(v.Needs, NeedView{name, rules.Needed(name), s.Desk.Enough(a, name), s.Desk.Yes(a, name)})
		if hint := rules[name].Hint; hint != "" {
			v.Hints = append(v.Hints, hint)
		}
	}
	for _, vote := range a.Votes {
		view := VoteView{By: vote.By, Vote: "no", At: vote.At, Reason: vote.Reason, Until: vote.Until}
		if vote.Yes {
			view.Vote = "yes"
		}
		v.Votes = append(v.Votes, view)
	}
	// A tool that is not known now has nobody to say which of its arguments are secret.
	if tool, err := s.Kernel.ToolVersion(a.Tool, a.Version); err == nil && tool != nil {
		v.Description, v.Effect = tool.Description(), tool.Effect()
		if len(a.Arguments) > 0 {
			v.Arguments, _ = audit.Redact(a.Arguments, tool.Secret)
		}
	}
	decides, err := a.MayVote(s.voter(c))
	switch {
	case v.State != approval.Waiting && v.State != approval.Approved:
		v.WhyNot = "It has ended."
	case errors.Is(err, approval.ErrRequester):
		v.WhyNot = "Nobody decides a call of their own."
	case err != nil:
		v.WhyNot = "You are not an approver for this rule."
	default:
		v.MayVote, v.MayRemember = true, mayRemember(a, decides, rules, c.Until)
	}
	return v
}

// mayRemember lists the scopes in which every rule that a voter decides lets a yes stand, each
// with the longest time: no yes outlives the credential of its voter.
func mayRemember(a *approval.Approval, decides []string, rules approval.Rules, ends time.Time) []RememberBody {
	list := []RememberBody{}
	for _, scope := range approval.Scopes() {
		most := rules[decides[0]].Remember[scope]
		for _, name := range decides[1:] {
			most = min(most, rules[name].Remember[scope])
		}
		if !ends.IsZero() {
			most = min(most, time.Until(ends).Truncate(time.Second))
		}
		if a.MayRemember(approval.Vote{Yes: true, Rules: decides, Remember: approval.Remember{Scope: scope, For: most}}, rules) == nil {
			list = append(list, RememberBody{string(scope), duration.Spell(most)})
		}
	}
	return list
}
