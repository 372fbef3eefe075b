package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/mcp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

const (
	// defaultAnswerTimeout is how long a client has for its answers to what a tool asks
	// at a time: a person may have to think.
	defaultAnswerTimeout = 5 * time.Minute
	// maxRounds is how often a tool may ask within one call.
	maxRounds = 8
	// heartbeatInterval is how often a client that is waited for is sent something, so that
	// nobody between takes the connection for dead.
	heartbeatInterval = 15 * time.Second
)

// elicitor asks the client of a running call, by requests to it. Only clients older than
// 2026-07-28 are asked so; nil is a client that cannot be asked.
type elicitor struct {
	kinds []string // of the questions that it has declared to answer
	// send sends one message.
	send func(line []byte) error
	// wait runs what waits for the client's answers. Its context ends with the
	// client's request, and once no answers will come any more. Where it is refused,
	// the call does not go on.
	wait func(func(context.Context)) *refusal.Error
	// heartbeat sends what says nothing; nil need not be called.
	heartbeat func() error
}

// supports tells whether the client has declared to answer all of some questions.
func (h *elicitor) supports(a *tool.InputRequired) bool {
	if h == nil || len(h.kinds) == 0 {
		return false
	}
	return !slices.ContainsFunc(a.Questions, func(q tool.Question) bool { return !slices.Contains(h.kinds, q.Kind) })
}

// The reasons why a tool's questions have no answers, for its model.
const (
	reasonNotAnswered = "the client did not answer them"
	reasonTimeout     = "there was no answer in time"
	reasonAbandoned   = "they are no longer waited for"
	reasonTooLong     = "the answers are too long"
	reasonTooOften    = "it asks over and over again"
)

// elicit has the client of a call asked what the tool asks, and the call made again
// with its answers, until the tool asks no more. Each time is a whole call for the
// kernel, of which nothing is held while the client thinks.
func (f *Face) elicit(ctx context.Context, r request, input gateway.Input, o calls.Outcome) calls.Outcome {
	for range maxRounds {
		if o.InputRequest == nil || !r.elicitor.supports(o.InputRequest) {
			return o
		}
		q := f.askClient(ctx, r, o.InputRequest.Questions)
		switch {
		case q.refused != nil:
			return failedOutcome(o, input.Native.Name, q.refused)
		case q.full:
			return o // as with a client that cannot be asked
		case q.reason != "":
			return unanswered(o, input.Native.Name, q.reason)
		}
		dialogue := *input.Dialogue
		dialogue.RequestState, dialogue.Answers = o.RequestState, q.answers
		input.Dialogue = &dialogue
		o = f.options.Kernel.HandleAdmitted(ctx, r.admission, input, "")
	}
	if o.InputRequest != nil {
		return unanswered(o, input.Native.Name, reasonTooOften)
	}
	return o
}

// unanswered is the outcome of a call whose tool was given no answers.
func unanswered(o calls.Outcome, tool, why string) calls.Outcome {
	return failedOutcome(o, tool, refusal.New(refusal.ToolFailed, fmt.Sprintf(
		"The tool asks before it goes on, and its questions were not answered: %s. Say so, or use another tool.", why)))
}

// failedOutcome is the outcome of a call that ends with a refusal.
func failedOutcome(o calls.Outcome, tool string, refused *refusal.Error) calls.Outcome {
	result, err := wrapper.Refusal(&tool, refused)
	if err != nil {
		refused = refusal.From(refusal.Wrap, err)
	}
	return calls.Outcome{CallID: o.CallID, Result: result.Line, Value: result, Refusal: refused, Status: refused.Status()}
}

// roundTrip is one set of questions to a client and its answers.
type roundTrip struct {
	answers map[string]json.RawMessage // by the names of the questions
	reason  string                     // there are none
	full    bool                       // nobody was asked: too many wait
	refused *refusal.Error             // the call cannot go on
}

// askClient sends questions to a client and waits for its answers.
func (f *Face) askClient(ctx context.Context, r request, questions []tool.Question) (q roundTrip) {
	to := make(chan clientAnswer, len(questions))
	names := make([]string, len(questions))
	for i := range questions {
		names[i] = questions[i].Name
	}
	ids := f.pending.add(r.admission.Principal(), names, to)
	if ids == nil {
		return roundTrip{full: true}
	}
	sent := 0
	defer func() {
		left := f.pending.remove(ids)
		r.elicitor.cancelQuestions(ctx, slices.DeleteFunc(left, func(id string) bool { return slices.Index(ids, id) >= sent }))
	}()
	q.refused = r.elicitor.wait(func(ctx context.Context) {
		for i := range questions {
			line, err := questionLine(ids[i], questions[i])
			if err == nil {
				err = r.elicitor.send(line)
			}
			if err != nil {
				q.reason = reasonAbandoned
				return
			}
			sent++
		}
		q.answers, q.reason = r.elicitor.collectAnswers(ctx, to, len(questions), f.answerTimeout(), heartbeatInterval)
	})
	if q.reason != "" {
		q.refused = nil // nothing needs to go on
	}
	return q
}

// questionLine is a question as a request to a client. A form has no mode, which the
// first revision with forms does not know and the next one need not be told; what a
// person visits has an id, which the next one asks for.
func questionLine(id string, q tool.Question) ([]byte, error) {
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

// collectAnswers waits for the answers to so many questions within a time, or says why there
// are none. The client is sent something every so often.
func (h *elicitor) collectAnswers(ctx context.Context, from <-chan clientAnswer, most int, within, every time.Duration) (answers map[string]json.RawMessage, why string) {
	timer, beat := time.NewTimer(within), time.NewTicker(every)
	defer timer.Stop()
	defer beat.Stop()
	answers = make(map[string]json.RawMessage, most)
	for size := 0; len(answers) < most; {
		select {
		case a := <-from:
			if a.result == nil {
				return nil, reasonNotAnswered
			}
			if size += len(a.result); size > maxResponsesBytes {
				return nil, reasonTooLong
			}
			answers[a.name] = a.result
		case <-timer.C:
			return nil, reasonTimeout
		case <-ctx.Done():
			return nil, reasonAbandoned
		case <-beat.C:
			if h.heartbeat != nil && h.heartbeat() != nil {
				return nil, reasonAbandoned
			}
		}
	}
	return answers, ""
}

// cancelQuestions tells a client that it need not answer some questions any more, where it is
// still there.
func (h *elicitor) cancelQuestions(ctx context.Context, ids []string) {
	for _, id := range ids {
		line, err := wrapper.Marshal(object{"jsonrpc": "2.0", "method": wire.NoticeCancelled,
			"params": object{"requestId": id, "reason": "The question is not waited for any more."}})
		if err != nil || ctx.Err() != nil || h.send(line) != nil {
			return
		}
	}
}

// answerTimeout is how long a client has for its answers.
func (f *Face) answerTimeout() time.Duration {
	if f.options.AnswerTimeout > 0 {
		return f.options.AnswerTimeout
	}
	return defaultAnswerTimeout
}
