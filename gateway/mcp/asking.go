package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

const (
	// defaultAnswerTime is how long a client has for its answers to what a tool asks
	// at a time: a person may have to think.
	defaultAnswerTime = 5 * time.Minute
	// mostRounds is how often a tool may ask within one call.
	mostRounds = 8
	// beatTime is how often a client that is waited for is sent something, so that
	// nobody between takes the connection for dead.
	beatTime = 15 * time.Second
)

// host is the client of a call as far as it can be asked while the call is answered.
// Those of before 2026-07-28 are, by requests in the middle of it; nil is one that
// cannot be.
type host struct {
	kinds []string // of the questions that it has declared to answer
	// send sends one message.
	send func(line []byte) error
	// wait runs what waits for the client's answers. Its context ends with the
	// client's request, and once no answers will come any more. Where it is refused,
	// the call does not go on.
	wait func(func(context.Context)) *refusal.Error
	// beat sends what says nothing; nil need not be called.
	beat func() error
}

// answers tells whether the client has declared to answer all of some questions.
func (h *host) answers(a *gateway.Asked) bool {
	if h == nil || len(h.kinds) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.Questions, func(q gateway.Question) bool { return !slices.Contains(h.kinds, q.Kind) })
}

// The reasons why a tool's questions have no answers, for its model.
const (
	notAnswered  = "the client did not answer them"
	notInTime    = "there was no answer in time"
	notWaitedFor = "they are no longer waited for"
	tooLong      = "the answers are too long"
	tooOften     = "it asks over and over again"
)

// inquire has the client of a call asked what the tool asks, and the call made again
// with its answers, until the tool asks no more. Each time is a whole call for the
// kernel, of which nothing is held while the client thinks.
func (f *Face) inquire(ctx context.Context, r asked, input gateway.Input, o gateway.Outcome) gateway.Outcome {
	for range mostRounds {
		if o.InputRequest == nil || !r.host.answers(o.InputRequest) {
			return o
		}
		q := f.put(ctx, r, o.InputRequest.Questions)
		switch {
		case q.refused != nil:
			return without(o, input.Native.Name, q.refused)
		case q.full:
			return o // as with a client that cannot be asked
		case q.why != "":
			return unanswered(o, input.Native.Name, q.why)
		}
		dialogue := *input.Dialogue
		dialogue.RequestState, dialogue.Answers = o.RequestState, q.answers
		input.Dialogue = &dialogue
		o = r.admission.Handle(ctx, input, "")
	}
	if o.InputRequest != nil {
		return unanswered(o, input.Native.Name, tooOften)
	}
	return o
}

// unanswered is the outcome of a call whose tool was given no answers.
func unanswered(o gateway.Outcome, tool, why string) gateway.Outcome {
	return without(o, tool, refusal.New(refusal.ToolFailed, fmt.Sprintf(
		"The tool asks before it goes on, and its questions were not answered: %s. Say so, or use another tool.", why)))
}

// without is an outcome that has no output, and says why.
func without(o gateway.Outcome, tool string, refused *refusal.Error) gateway.Outcome {
	result, err := wrapper.Refusal(&tool, refused)
	if err != nil {
		refused = refusal.From(refusal.Wrap, err)
	}
	return gateway.Outcome{CallID: o.CallID, Result: result, Refusal: refused, Status: refused.Status()}
}

// round is one time that a client is asked.
type round struct {
	answers map[string]json.RawMessage // by the names of the questions
	why     string                     // there are none
	full    bool                       // nobody was asked: too many wait
	refused *refusal.Error             // the call cannot go on
}

// put puts questions to a client, and waits for its answers.
func (f *Face) put(ctx context.Context, r asked, questions []gateway.Question) (q round) {
	to := make(chan said, len(questions))
	names := make([]string, len(questions))
	for i := range questions {
		names[i] = questions[i].Name
	}
	ids := f.waiting.add(r.admission.Principal(), names, to)
	if ids == nil {
		return round{full: true}
	}
	sent := 0
	defer func() {
		left := f.waiting.end(ids)
		r.host.withdraw(ctx, slices.DeleteFunc(left, func(id string) bool { return slices.Index(ids, id) >= sent }))
	}()
	q.refused = r.host.wait(func(ctx context.Context) {
		for i := range questions {
			line, err := requestOf(ids[i], questions[i])
			if err == nil {
				err = r.host.send(line)
			}
			if err != nil {
				q.why = notWaitedFor
				return
			}
			sent++
		}
		q.answers, q.why = r.host.collect(ctx, to, len(questions), f.answerTime(), beatTime)
	})
	if q.why != "" {
		q.refused = nil // nothing needs to go on
	}
	return q
}

// requestOf is a question as a request to a client. A form has no mode, which the
// first revision with forms does not know and the next one need not be told; what a
// person visits has an id, which the next one asks for.
func requestOf(id string, q gateway.Question) ([]byte, error) {
	request := object{"jsonrpc": "2.0", "id": id, "method": q.Method}
	if len(q.Params) > 0 {
		params := map[string]json.RawMessage{}
		if err := json.Unmarshal(q.Params, &params); err != nil {
			return nil, err
		}
		switch q.Kind {
		case elicitation.Form:
			delete(params, "mode")
		case elicitation.URL:
			params["elicitationId"] = json.RawMessage(`"` + id + `"`)
		}
		request["params"] = params
	}
	return wrapper.Marshal(request)
}

// collect waits for the answers to so many questions within a time, or says why there
// are none. The client is sent something every so often.
func (h *host) collect(ctx context.Context, from <-chan said, most int, within, every time.Duration) (answers map[string]json.RawMessage, why string) {
	timer, beat := time.NewTimer(within), time.NewTicker(every)
	defer timer.Stop()
	defer beat.Stop()
	answers = make(map[string]json.RawMessage, most)
	for size := 0; len(answers) < most; {
		select {
		case a := <-from:
			if a.result == nil {
				return nil, notAnswered
			}
			if size += len(a.result); size > maxResponsesBytes {
				return nil, tooLong
			}
			answers[a.name] = a.result
		case <-timer.C:
			return nil, notInTime
		case <-ctx.Done():
			return nil, notWaitedFor
		case <-beat.C:
			if h.beat != nil && h.beat() != nil {
				return nil, notWaitedFor
			}
		}
	}
	return answers, ""
}

// withdraw tells a client that it need not answer some questions any more, where it is
// still there.
func (h *host) withdraw(ctx context.Context, ids []string) {
	for _, id := range ids {
		line, err := wrapper.Marshal(object{"jsonrpc": "2.0", "method": "notifications/cancelled",
			"params": object{"requestId": id, "reason": "The question is not waited for any more."}})
		if err != nil || ctx.Err() != nil || h.send(line) != nil {
			return
		}
	}
}

// answerTime is how long a client has for its answers.
func (f *Face) answerTime() time.Duration {
	if f.options.AnswerTimeout > 0 {
		return f.options.AnswerTimeout
	}
	return defaultAnswerTime
}
