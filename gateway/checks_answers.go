package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// answerKeyPrefix is how the keys begin of calls that answer a question. No face lets a
// caller's key hold a space, and the kernel refuses those that begin so.
const answerKeyPrefix = "asked by "

// checkAnswers is the third step of the stage schema: where the call answers what a tool has
// asked, it is the call that was asked, and the answers fit their questions. Answers
// without a state are judged by what the tool will ask.
func checkAnswers(ctx context.Context, c *call) error {
	d := c.input.Dialogue
	if !d.BringsAnswers() {
		return nil
	}
	if c.mode != ModeCall {
		return errors.New("an answer in a call that is not executed here")
	}
	if d.RequestState == "" {
		return nil
	}
	asked, err := c.loadQuestions(ctx, d.RequestState)
	if err != nil {
		return err
	}
	answers, violations, err := elicit.ReadAnswers(asked, d.Answers)
	if err != nil {
		return err
	}
	if violations = violations[:min(len(violations), maxViolations)]; len(violations) > 0 {
		if elicit.OnlyMissing(violations) {
			c.unanswered = &elicit.Unanswered{Asked: asked, Dialogue: d}
		}
		refused := refusal.At(refusal.Schema, violations[0].Code, summary(violations))
		refused.Violations = violations
		return refused
	}
	c.answers = answers
	return nil
}

// loadQuestions is what the call asked that a state names, where this one is the same
// call of the same caller.
func (c *call) loadQuestions(ctx context.Context, state string) (*tool.InputRequired, error) {
	if !elicit.ValidState(state) {
		return nil, elicit.UnknownState()
	}
	ctx, cancel := context.WithTimeout(ctx, storeWait)
	defer cancel()
	asking := c.trace.start()
	prior, err := c.kernel.get(ctx, state, store.Of(principalName(c.principal)))
	c.trace.storeStep(ctx, asking, err)
	if errors.Is(err, store.ErrNotFound) {
		return nil, elicit.UnknownState()
	}
	if err != nil {
		return nil, refusal.New(refusal.StoreUnavailable, "What was asked cannot be looked up now, so nothing was executed. Send the answers again later.").WithCause(err)
	}
	asked := prior.meta.Asked
	if prior.Step != store.Ended || asked == nil || prior.meta.AskedCallDigest != c.questionDigest() || !elicit.MayStillAsk(asked, c.tool.Run().Asks) {
		return nil, elicit.UnknownState()
	}
	return asked, nil
}

// questionDigest is the digest of the call that a question belongs to: only the same call
// is an answer to it. It holds where the tool is, too: what the tool has said goes to
// nobody else.
func (c *call) questionDigest() string {
	run := c.tool.Run()
	arguments, err := json.Marshal(c.args)
	if err != nil {
		arguments = c.parsed.Arguments
	}
	s := c.subject
	return digest(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q %q %q %q %s", c.tool.Name(), c.tool.Version(), s.Agent, s.Workspace, s.Project, c.request.User,
		run.Type, run.Server, run.URL, run.Command, run.Tool, digest(arguments)))
}

// answersInAdvance are the answers to what a tool has asked just now, where the call brings
// all of them and none has a fault; else they are nil, and the caller is asked.
func (c *call) answersInAdvance(asked *tool.InputRequired) (answers *elicit.Answers) {
	defer func() {
		if recover() != nil {
			answers = nil
		}
	}()
	read, violations, err := elicit.ReadAnswers(asked, c.input.Dialogue.Answers)
	if err != nil || len(violations) > 0 || c.project == nil {
		return nil
	}
	if outside, err := read.Outside(c.project.Bounds(), 1); err != nil || len(outside) > 0 {
		return nil
	}
	return read
}

// allowedQuestions are the kinds of questions that the tool of a call may put to its caller.
func (c *call) allowedQuestions() []string {
	if c.tool == nil {
		return nil
	}
	return c.input.Dialogue.AllowedKinds(c.tool.Run().Asks)
}

// answersDigest is the digest of the state and the answers that the call brings.
func (c *call) answersDigest() string {
	if c.answersSHA256 == "" {
		c.answersSHA256 = c.input.Dialogue.AnswersDigest()
	}
	return c.answersSHA256
}

// answerKey is the idempotency key of a call that answers a question, whatever other
// one it brings: what a question is answered with stands.
func (c *call) answerKey() string {
	d := c.input.Dialogue
	if d == nil || !elicit.ValidState(d.RequestState) {
		return ""
	}
	return answerKeyPrefix + d.RequestState
}

// mayBringAnswers tells whether a call may have brought answers to its tool. They are not kept
// with its arguments, so it is never dispatched again.
func (c *call) mayBringAnswers() bool {
	return c.answers != nil || c.input.Dialogue.BringsAnswers() && len(c.allowedQuestions()) > 0
}
