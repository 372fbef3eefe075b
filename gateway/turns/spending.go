package turns

import (
	"context"
	"fmt"
	"strconv"

	"github.com/callgate/callgate/gateway/runs"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit/budget"
	"github.com/callgate/callgate/upstream"
)

// spending is the upstream.Meter of a run: it reserves each request to the model in the budgets
// that cover it. A request whose usage is not stated by Settle stays charged as it
// was reserved.
type spending struct {
	run *Run
	// Of the request that is sent: the budgets that it is judged by, nil where none covers it, and
	// the bounds of what it takes.
	set        *budget.Set
	inputBytes int
	output     int64
	hold       budget.Hold
	// Of the run: what all requests that have ended were charged with, and whether one of them was
	// charged as it was reserved.
	charged    budget.Amount
	asReserved bool
}

// maxOutput is more tokens than any model writes.
const maxOutput = 1 << 40

// outputMembers are the members of a request that bound the tokens of its output: the largest counts,
// since servers differ in which they go by. The first is the one that a request without any gets.
var outputMembers = map[upstream.Endpoint][]string{
	upstream.ChatCompletions: {"max_completion_tokens", "max_tokens", "n_predict"},
	upstream.Messages:        {"max_tokens"},
	upstream.Responses:       {"max_output_tokens"},
}

// answerMembers are the members of a request for a chat completion that say how many answers are
// written: the largest counts, of best_of only n are returned, and all are billed.
var answerMembers = []string{"n", "best_of"}

// thinkingMember bounds what some servers write before the answer, and beyond the bound of that.
const thinkingMember = "thinking_budget"

// Prepare implements upstream.Meter: it reads the bounds of a request, and puts one of its output
// into a request that has none. Its error is a *Failure.
func (s *spending) Prepare(endpoint upstream.Endpoint, body []byte) ([]byte, error) {
	if s.set = s.covering(); s.set == nil {
		return body, nil
	}
	o, err := rawjson.Read(body)
	if err != nil {
		return nil, fmt.Errorf("the request to the model cannot be read: %w", err)
	}
	members := outputMembers[endpoint]
	if s.output, err = largest(o, members, 0); err != nil {
		return nil, err
	}
	if s.output == 0 {
		if s.output = s.run.Route.Rules.DefaultOutputTokens; s.output == 0 {
			return nil, Bad(members[0], "A budget covers this request, so it must bound its output by %q. Or the operator sets default_output_tokens of the upstream %s.", members[0], s.run.Route.Upstream)
		}
		o = o.Set(members[0], strconv.AppendInt(nil, s.output, 10))
		body = o.Bytes()
	}
	if endpoint == upstream.ChatCompletions {
		thinking, err := largest(o, []string{thinkingMember}, 0)
		if err != nil {
			return nil, err
		}
		answers, err := largest(o, answerMembers, 1)
		if err != nil {
			return nil, err
		}
		if s.output += thinking; s.output > maxOutput/answers {
			s.output = maxOutput
		}
		s.output = min(maxOutput, s.output*answers)
	}
	s.inputBytes = len(body)
	return body, nil
}

// largest is the largest number of some members, and of one more.
func largest(o rawjson.Object, names []string, most int64) (int64, error) {
	for _, name := range names {
		n, stated, err := wholeNumber(o, name)
		if err != nil {
			return 0, err
		}
		if stated {
			most = max(most, n)
		}
	}
	return most, nil
}

// wholeNumber reads a member that is a whole number of at least 1, or null, which states nothing.
func wholeNumber(o rawjson.Object, name string) (n int64, stated bool, _ error) {
	raw := o.Get(name)
	if raw == nil || string(raw) == "null" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 1 || n > maxOutput {
		return 0, false, Bad(name, "%q must be a whole number of at least 1; found %s.", name,
			parser.Quote(string(raw[:min(len(raw), 32)])))
	}
	return n, true, nil
}

// covering is the budgets of the current configuration if one covers the run, else nil.
func (s *spending) covering() *budget.Set {
	set := s.run.options.Budgets.Set()
	if set == nil || !set.Covers(s.scope()) {
		return nil
	}
	return set
}

// scope says whose run it is. A project in which it may not act is none: a caller may name any.
func (s *spending) scope() budget.Scope {
	a := s.run.Admission
	subject := a.Subject()
	of := budget.Scope{Principal: a.Principal(), Agent: subject.Agent, Model: s.run.Route.Model}
	if a.InProject() {
		of.Workspace, of.Project = subject.Workspace, subject.Project
	}
	return of
}

// Reserve implements upstream.Meter. Its error is a *Failure.
func (s *spending) Reserve(ctx context.Context) error {
	s.hold.Keep() // of the attempt before, which may have taken something
	s.ended()
	if s.set == nil {
		return nil
	}
	hold, err := s.run.options.Budgets.Reserve(ctx, s.set, s.scope(), s.inputBytes, s.output)
	if err != nil {
		failed := FailureOf(err)
		failed.Retryable = false // not soon enough for a client that tries again by itself
		return failed
	}
	s.hold = hold
	return nil
}

// Unbilled implements upstream.Meter.
func (s *spending) Unbilled() {
	s.hold.GiveBack()
	s.ended()
}

// ended adds what the request that has just ended was charged with.
func (s *spending) ended() {
	amount, asReserved := s.hold.Charged()
	s.charged, s.asReserved = s.charged.Add(amount), s.asReserved || asReserved
	s.hold = budget.Hold{}
}

// Settle charges what the reply that was read last has taken, by the words of its provider. A reply
// whose usage does not state both input and output stays charged as it was reserved.
func (r *Run) Settle(usage budget.Usage) {
	input := usage
	if input.Output = 0; input.Tokens() == 0 || usage.Output <= 0 {
		return
	}
	r.spending.hold.Settle(usage)
	r.spending.ended()
}

// endSpending ends a turn: what was not settled stays charged. The record of the run says what the run
// was charged with until now.
func (r *Run) endSpending() {
	s := &r.spending
	s.hold.Keep()
	s.ended()
	if s.set == nil {
		return
	}
	c := runs.Charged{Tokens: s.charged.Tokens, AsReserved: s.asReserved}
	if c.Currency = s.set.Currency; c.Currency != "" {
		c.Money = budget.FormatMoney(s.charged.Micros)
	}
	r.recording.SetCharged(c)
}

// IsMetered reports whether a budget covers the run, so that a provider must state what it took.
func (r *Run) IsMetered() bool { return r.options.Budgets != nil && r.spending.covering() != nil }

// CachedTokens is how many tokens of the input were read from a cache, of a usage in the form of
// OpenAI's APIs; details is the member that states it.
func CachedTokens(usage []byte, details string) int64 {
	members, _ := rawjson.Members(usage)
	return CountOf(members.Get(details), "cached_tokens")
}

// CountOf is a whole number in an object of a usage; 0 where there is none.
func CountOf(object []byte, name string) int64 {
	of, _ := rawjson.Members(object)
	n, err := strconv.ParseInt(string(of.Get(name)), 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}
