package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/elicitation"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/policy/boundary"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
)

const (
	// maxQuestions bounds how much a tool asks at once.
	maxQuestions = 16
	// maxAsked bounds the bytes of that, and of the tool's own state: they are kept in
	// the store.
	maxAsked = 256 << 10
)

// runTool asks the engine, and says to the caller meanwhile how far the tool is, and
// what it logs. Where the tool asks what the call brings the answers to, without having
// been asked before, it is asked once more with them, within the same call.
func (c *execution) runTool(ctx context.Context) (tool.Result, error) {
	d := c.input.Dialogue
	if c.notifier = d.notifier(); c.notifier != nil {
		defer c.notifier.Stop()
	}
	output, err := c.runEngine(ctx)
	if output.InputRequired == nil || d == nil || d.RequestState != "" || len(d.Answers) == 0 || len(output.InputRequired.Questions) == 0 {
		return output, err
	}
	answers, ok := c.answersInAdvance(output.InputRequired)
	if !ok {
		return output, err
	}
	c.answers = &answersForTool{output.InputRequired.State, answers}
	tried := max(output.Attempts, 1)
	output, err = c.runEngine(ctx)
	output.Attempts = tried + max(output.Attempts, 1)
	return output, err
}

// answersInAdvance are the answers to what a tool has asked just now, where the call brings
// all of them and none has a fault.
func (c *call) answersInAdvance(asked *tool.InputRequired) (answers map[string]json.RawMessage, ok bool) {
	defer func() {
		if recover() != nil {
			answers, ok = nil, false // the caller is asked
		}
	}()
	answers, folders, violations, err := judgeAnswers(asked, c.input.Dialogue.Answers)
	if err != nil || len(violations) > 0 {
		return nil, false
	}
	for _, f := range folders {
		if c.project == nil || c.project.Bounds().Within(boundary.KindPath, f.path) != nil {
			return nil, false
		}
	}
	return answers, true
}

// checkQuestions judges what a tool asks before anybody sees it. It asks instead of acting:
// what it asks beside anything else than a failure is dropped, and where it is no
// question that may be put to this caller, the call has failed.
func (c *call) checkQuestions(output tool.Result, err error) (tool.Result, error) {
	asked := output.InputRequired
	if output.InputRequired = nil; asked == nil {
		return output, err
	}
	var refused *refusal.Error
	if !errors.As(err, &refused) || refused.Code != refusal.ToolFailed {
		return output, err
	}
	read, unusable := c.readQuestions(asked)
	if unusable != nil {
		return output, refusal.New(refusal.ToolFailed, fmt.Sprintf(
			"%s asked for something that cannot be passed on, so it got no answer. Use another tool, or say what you cannot do.", c.writtenName())).WithCause(unusable)
	}
	output.InputRequired = read
	return output, err
}

// readQuestions reads questions that may be put to the caller. Its errors say nothing in
// the tool's words.
func (c *call) readQuestions(asked *tool.InputRequired) (read *tool.InputRequired, err error) {
	defer safe.RecoverZero(&read, &err)
	kinds := c.allowedQuestions()
	size := 0
	if asked.State != nil {
		size = len(*asked.State)
	}
	switch {
	case len(kinds) == 0:
		return nil, errors.New("a tool has asked that may not")
	case len(asked.Questions) == 0 && asked.State == nil:
		return nil, errors.New("a tool has asked nothing")
	case len(asked.Questions) > maxQuestions:
		return nil, errors.New("a tool has asked too much at once")
	case asked.State != nil && !utf8.ValidString(*asked.State):
		return nil, errors.New("a tool's own state is no text")
	}
	read = &tool.InputRequired{State: asked.State, Questions: make([]tool.Question, 0, len(asked.Questions))}
	for _, q := range asked.Questions {
		if !slices.Contains(kinds, q.Kind) {
			return nil, errors.New("a tool has asked what it may not, or what its caller cannot answer")
		}
		question, err := elicitation.Read(q.Name, q.Kind, q.Method, q.Params)
		if err != nil {
			return nil, err
		}
		q.Params = question.Params()
		read.Questions = append(read.Questions, q)
		if size += len(q.Name) + len(q.Params); size > maxAsked {
			break
		}
	}
	if size > maxAsked {
		return nil, errors.New("a tool has asked too much at once")
	}
	byName := func(a, b tool.Question) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(read.Questions, byName)
	for i, q := range read.Questions[min(1, len(read.Questions)):] {
		if q.Name == read.Questions[i].Name {
			return nil, errors.New("a tool has asked two questions of one name")
		}
	}
	return read, nil
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

// addInputRequest adds to an outcome what its caller is asked, by which call.
func (o *Outcome) addInputRequest(asked *tool.InputRequired, by string, d *Dialogue) {
	if d.canAnswer(asked) {
		o.InputRequest, o.RequestState = &tool.InputRequired{Questions: asked.Questions}, by
	}
}
