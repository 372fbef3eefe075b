package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/callgate/callgate/gateway/elicit"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// checkAnswers is the fourth step of the stage schema: if the call answers a tool's
// questions, it must be the call that was asked, and the answers must fit the questions.
// Answers without a state are checked once the tool has asked.
func checkAnswers(ctx context.Context, c *Call) error {
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
	questions, err := c.loadQuestions(ctx, d.RequestState)
	if err != nil {
		return err
	}
	c.elicited.answers, c.elicited.unanswered, err = d.AnswersTo(questions, violations.Max)
	return err
}

// loadQuestions returns the questions of the call that a state names, if this call is the
// same call of the same caller.
func (c *Call) loadQuestions(ctx context.Context, state string) (*tool.InputRequired, error) {
	if !elicit.ValidState(state) {
		return nil, elicit.UnknownState()
	}
	ctx, cancel := context.WithTimeout(ctx, StoreWait)
	defer cancel()
	asking := c.trace.Start()
	if c.kernel.deps.Questions == nil {
		return nil, refuse.UnreadQuestions(errors.New("no questions are kept"))
	}
	questions, callDigest, err := c.kernel.deps.Questions.Questions(ctx, state, principalName(c.principal))
	c.trace.StoreStep(ctx, asking, err)
	if errors.Is(err, store.ErrNotFound) {
		return nil, elicit.UnknownState()
	}
	if err != nil {
		return nil, refuse.UnreadQuestions(err)
	}
	if questions == nil || callDigest != c.QuestionDigest() || !elicit.MayStillAsk(questions, c.tool.SharedRun().InputRequests) {
		return nil, elicit.UnknownState()
	}
	return questions, nil
}

// QuestionDigest is the digest of the call that a question belongs to: only the same call
// can answer it, with the arguments that the model wrote, which a hook may have redacted. It covers
// the tool's address, too, so that answers and state go to no other server.
func (c *Call) QuestionDigest() string {
	run := c.tool.SharedRun()
	arguments := c.hooks.unredacted
	if arguments == nil {
		arguments = c.parsed.Arguments
	}
	if canonical, err := json.Marshal(parser.DecodeObject(arguments)); err == nil {
		arguments = canonical
	}
	s := c.subject
	return journal.Digest(fmt.Appendf(nil, "%q %q %q %q %q %q %q %q %q %q %q %s", c.tool.Name(), c.tool.Version(), s.Agent, s.Workspace,
		s.Project, c.request.User,
		run.Type, run.Server, run.URL, run.Command, run.Tool, journal.Digest(arguments)))
}

// allowedQuestions are the kinds of questions that the tool of a call may put to its caller.
func (c *Call) allowedQuestions() []string {
	if c.tool == nil {
		return nil
	}
	return c.input.Dialogue.AllowedKinds(c.tool.SharedRun().InputRequests)
}

// answersDigest is the digest of the call's request state and answers.
func (c *Call) answersDigest() string {
	if c.digests.answers == "" {
		c.digests.answers = c.input.Dialogue.AnswersDigest()
	}
	return c.digests.answers
}

// mayBringAnswers reports whether a call may carry answers for its tool. They are not
// stored with its arguments, so such a call is never dispatched again.
func (c *Call) mayBringAnswers() bool {
	return c.elicited.answers != nil || c.input.Dialogue.BringsAnswers() && len(c.allowedQuestions()) > 0
}
