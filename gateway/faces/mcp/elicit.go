package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/calls"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/internal/mcp/wire"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

const (
	// defaultAnswerTimeout is how long a client has to answer one set of questions: a person
	// may have to think.
	defaultAnswerTimeout = 5 * time.Minute
	// maxRounds is how often a tool may ask within one call.
	maxRounds = 8
	// heartbeatInterval is how often a comment is sent while a client thinks, so that no proxy
	// closes the connection.
	heartbeatInterval = 15 * time.Second
)

// elicitor sends questions to the client of a running call, as requests. It serves only
// clients older than 2026-07-28; it is nil for a client that cannot answer.
type elicitor struct {
	kinds []string // of the questions that it has declared to answer
	// send sends one message.
	send func(line []byte) error
	// wait runs a function that waits for the client's answers. The function's context ends
	// with the client's request, and once no answers can come any more. A refusal ends the
	// call.
	wait func(func(context.Context)) *refusal.Error
	// heartbeat sends a comment that keeps the connection open. It may be nil.
	heartbeat func() error
}

// supports reports whether the client has declared to answer all questions of a tool.
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

// elicit makes a call, asks its client the questions of its tool, and makes the call again with
// the answers, until the tool asks no more. Each time is a whole call for the kernel, which
// holds no slot while the client thinks.
func (f *Face) elicit(ctx context.Context, r request, input gateway.Input, asker *approvalAsker) calls.Outcome {
	o := asker.handle(ctx, input, r.idempotencyKey)
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
		o = asker.handle(ctx, input, "")
	}
	if o.InputRequest != nil {
		return unanswered(o, input.Native.Name, reasonTooOften)
	}
	return o
}

// unanswered is the outcome of a call whose tool's questions got no answers.
func unanswered(o calls.Outcome, tool, why string) calls.Outcome {
	return failedOutcome(o, tool, refusal.New(refusal.ToolFailed, fmt.Sprintf(
		"The tool asks before it continues, and its questions were not answered: %s. Say so, or use another tool.", why)))
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
	reason  string                     // why there are no answers
	full    bool                       // nothing was asked, because too many questions wait
	refused *refusal.Error             // why the call ends
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
		q.answers, q.reason = r.elicitor.collectAnswers(ctx, to, len(questions), f.options.AnswerTimeout, heartbeatInterval)
	})
	if q.reason != "" {
		q.refused = nil // the call ends for the reason
	}
	return q
}

// questionLine is a question as a request to a client. A form is sent without mode, which
// 2025-06-18 does not know and 2025-11-25 does not require; a URL is sent with the id that
// 2025-11-25 requires.
func questionLine(id string, q tool.Question) ([]byte, error) {
	if len(q.Params) == 0 {
		return jsonrpc.Encode(jsonrpc.StringID(id), q.Method, nil)
	}
	params := map[string]json.RawMessage{}
	if err := json.Unmarshal(q.Params, &params); err != nil {
		return nil, err
	}
	switch q.Kind {
	case tool.QuestionForm:
		delete(params, "mode")
	case tool.QuestionURL:
		params["elicitationId"] = json.RawMessage(`"` + id + `"`)
	}
	return jsonrpc.Encode(jsonrpc.StringID(id), q.Method, params)
}

// collectAnswers waits for the answers to a number of questions within a time, or returns the
// reason why there are none. It sends heartbeats meanwhile.
func (h *elicitor) collectAnswers(ctx context.Context, from <-chan clientAnswer, most int, within,
	every time.Duration) (answers map[string]json.RawMessage, why string) {
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

// cancelQuestions cancels questions, unless the client has left.
func (h *elicitor) cancelQuestions(ctx context.Context, ids []string) {
	for _, id := range ids {
		line, err := jsonrpc.Encode(jsonrpc.ID{}, wire.NoticeCancelled,
			object{"requestId": id, "reason": "The question is not waited for any more."})
		if err != nil || ctx.Err() != nil || h.send(line) != nil {
			return
		}
	}
}
