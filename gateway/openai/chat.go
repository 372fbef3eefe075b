package openai

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/server"
	"github.com/callgate/callgate/internal/sse"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/upstream"
)

// chat answers a request for a completion.
func (f *Face) chat(c *gin.Context, request server.Request) {
	r, err := f.newRun(c, request)
	if err != nil {
		writeFailure(c, failureOf(err))
		return
	}
	if r.request.stream {
		server.KeepBody(c) // a stream may begin before the last turn is requested
		r.stream = &eventStream{c: c, writer: sse.NewWriter(c.Writer, writeTimeout, time.Second), run: r, buffer: *streamBuffers.Get().(*[]byte)}
		defer r.stream.release()
	}
	t, failed := r.runTurns(c.Request.Context())
	switch {
	case failed != nil && r.stream != nil && r.stream.begun:
		r.stream.fail(failed)
	case failed != nil:
		r.setCallIDHeader(c)
		writeFailure(c, failed)
	case r.stream != nil:
		r.stream.finish(t)
	default:
		r.setCallIDHeader(c)
		r.writeCompletion(c, t)
	}
}

// setCallIDHeader names the last judgement, before anything is written.
func (r *run) setCallIDHeader(c *gin.Context) {
	if r.callID != "" {
		c.Header(server.HeaderCallID, r.callID)
	}
}

// newRun admits the caller, then reads the request and decides how to run it.
func (f *Face) newRun(c *gin.Context, received server.Request) (*run, error) {
	admission, err := f.options.Executor.Admit(c.Request.Context(), received.Request)
	if err != nil {
		return nil, err
	}
	body, err := readRequest(received.Body)
	if err != nil {
		return nil, err
	}
	r := &run{face: f, request: body, admission: admission, refusedCalls: map[refusedCall]int{}}
	route, ok := f.options.Upstreams().Lookup(body.model)
	if !ok {
		return nil, &failure{refused: refusal.New(refusal.NotFound, fmt.Sprintf("There is no model %s here.", parser.Quote(body.model))), param: "model"}
	}
	r.route = route
	if err = r.checkMembers(); err != nil {
		return nil, err
	}
	if r.mode, err = modeOf(c.GetHeader(headerMode), route.Rules.Modes); err != nil {
		return nil, err
	}
	if r.mode == gateway.ModeCall && body.n > 1 {
		return nil, bad("n", "\"n\" must be 1 where Callgate runs the tools.")
	}
	if r.offer, err = r.newOffer(); err != nil {
		return nil, err
	}
	if err = r.narrowToolChoice(); err != nil {
		return nil, err
	}
	return r, r.writeHistory()
}

// modeOf returns the requested mode, if it is among the allowed ones.
func modeOf(requested string, allowed []upstream.Mode) (gateway.Mode, error) {
	var names []string
	for _, mode := range allowed {
		if requested == "" || requested == string(mode) {
			if mode == upstream.Orchestrate {
				return gateway.ModeCall, nil
			}
			return gateway.ModeEnforce, nil
		}
		names = append(names, string(mode))
	}
	return "", bad("", "The header %s must be one of: %s.", headerMode, strings.Join(names, ", "))
}

// runTurns requests turns from the model until one is the answer.
func (r *run) runTurns(ctx context.Context) (*turn, *failure) {
	modelCtx := ctx
	if r.mode == gateway.ModeCall {
		var cancel context.CancelFunc
		modelCtx, cancel = context.WithTimeoutCause(ctx, r.route.Rules.RunTimeout, errWallTime)
		defer cancel()
	}
	for {
		t, err := r.requestTurn(modelCtx, ctx)
		if err != nil {
			return nil, r.turnFailure(modelCtx, err)
		}
		r.usage.add(t.Usage)
		r.noteCallID(t)
		refused := t.refusal()
		switch {
		case refused != nil:
			if failed := r.repair(t, refused); failed != nil {
				return nil, failed
			}
		case r.mode == gateway.ModeEnforce:
			return t, r.complete(ctx, t)
		case t.calls():
			r.repairs = 0
			if failed := r.execute(ctx, t); failed != nil {
				return nil, failed
			}
		default:
			return t, r.complete(ctx, t)
		}
		if failed := r.checkBounds(t); failed != nil {
			return nil, failed
		}
	}
}

// noteCallID remembers the judgement that the answer's head names.
func (r *run) noteCallID(t *turn) {
	first := &t.choices[0] // there is one: an answer without is not an answer
	reports := first.decision.Reports
	if passed := first.passed(); len(passed) > 0 {
		reports = passed
	}
	r.callID = reports[0].CallID
}

// complete ends a turn that is the answer.
func (r *run) complete(ctx context.Context, t *turn) *failure {
	end := r.face.options.Executor.HandOver
	if r.mode == gateway.ModeCall {
		end = r.face.options.Executor.Execute // of text alone
	}
	for i := range t.choices {
		for _, o := range end(ctx, t.choices[i].decision) {
			if o.Refusal != nil {
				t.release()
				return &failure{refused: o.Refusal, result: o.Result}
			}
		}
	}
	return nil
}

// turnFailure is the failure of a turn without an answer of the model.
func (r *run) turnFailure(modelCtx context.Context, err error) *failure {
	if errors.Is(context.Cause(modelCtx), errWallTime) {
		return r.boundReached("The run has taken the time that it may take.")
	}
	if errors.Is(err, context.Canceled) && modelCtx.Err() != nil {
		err = clientLeft(err)
	}
	f := failureOf(err)
	f.retryable = f.retryable && r.steps == 0
	return f
}

// checkBounds fails a run that may not request another turn.
func (r *run) checkBounds(t *turn) *failure {
	rules := &r.route.Rules
	switch {
	case r.conversation.added > maxBodyBytes:
		return r.boundReached("The results of the run are longer than a conversation may be.")
	case r.mode == gateway.ModeEnforce:
		return nil
	case rules.TokenBudget > 0 && tokensOf(t.Usage) == 0:
		return r.boundReached("The run has a bound of tokens, and the model's provider does not say how many it took.")
	case rules.TokenBudget > 0 && r.usage.tokens >= rules.TokenBudget:
		return r.boundReached("The run has taken the tokens that it may take.")
	}
	return nil
}
