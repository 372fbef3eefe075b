package acp

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/callgate/callgate/gateway"
	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/internal/acp/delegate"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/jsonrpc"
	"github.com/callgate/callgate/refusal"
)

// beginPrompt reads a prompt and begins it, in the order of the messages: a session/cancel behind it
// finds it running.
func (c *connection) beginPrompt(ctx context.Context, m *jsonrpc.Message) *jsonrpc.Error {
	params, err := wire.Read[wire.PromptRequest](m.Params)
	if err != nil {
		return badParams(err)
	}
	s, err := c.openSession(params.SessionID)
	if err != nil {
		return faultOf(err)
	}
	content, err := readContent(params.Prompt, c.face.options.Images)
	if err != nil {
		return faultOf(err)
	}
	x := &exchange{session: s, content: content, ended: make(chan struct{})}
	x.ctx, x.stop = context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return faultOf(errNoSession)
	case s.running != nil:
		return errRunning
	case s.shown.size > maxShown:
		return faultOf(refusal.New(refusal.BoundReached, "The session is as long as one may be. Begin another one."))
	}
	s.running, s.last = x, x
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun[m] = x
	return nil
}

// prompt answers a prompt that was begun.
func (c *connection) prompt(m *jsonrpc.Message) (any, *jsonrpc.Error) {
	c.mu.Lock()
	x := c.begun[m]
	c.mu.Unlock()
	defer x.end()
	return x.run(m)
}

// end lets the session have its next prompt, which may come as soon as this one is answered.
func (x *exchange) end() {
	x.stop()
	x.session.mu.Lock()
	defer x.session.mu.Unlock()
	x.session.running = nil
}

// answered is told of a request that was answered.
func (c *connection) answered(m *jsonrpc.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if x := c.begun[m]; x != nil {
		delete(c.begun, m)
		close(x.ended)
	}
}

// run runs the prompt, and keeps what became of it.
func (x *exchange) run(m *jsonrpc.Message) (any, *jsonrpc.Error) {
	s, c := x.session, x.session.conn
	if err := x.settleProtocol(); err != nil {
		return nil, faultOf(err)
	}
	x.nameSession()
	x.view = &view{exchange: x, admission: s.admission}
	for _, block := range x.content.blocks {
		s.shown.add(wire.MessageChunk{Kind: wire.UpdateUserMessage, Content: block})
	}
	client := x.client()
	request := c.request
	request.Thread = s.id
	ended, failed := c.face.options.Turns.Prompt(delegate.WithClient(x.ctx, client), c.face.options.Wire, turns.Prompt{
		Request: request, Model: c.face.options.Model, System: s.system(), Content: x.content.chat,
		ClientRuns: func(t gateway.Tool) bool { return t.Method != "" && client.Offers(t.Method) },
		Sink:       x.view, Observer: x.view, Asker: x.view.ask,
	}, &s.history)
	reason, fault := x.stopReason(ended, failed)
	if err := c.face.kept(x.view.admission).write(s); err != nil {
		c.face.options.Logger.Warn("an ACP session could not be saved", "cause", err.Error())
	}
	if fault != nil {
		if failed.Refused != nil {
			c.logInternal(m, failed.Refused)
		}
		return nil, fault
	}
	response := wire.PromptResponse{StopReason: reason}
	if reason != wire.StopCancelled && failed != nil && failed.Refused != nil {
		response.Meta, _ = json.Marshal(errorData{failed.Refused}) // text and numbers
	}
	return response, nil
}

// stopReason says why a prompt has ended: a reason, or an error. One that was cancelled never ends in
// an error.
func (x *exchange) stopReason(ended turns.PromptEnd, failed *turns.Failure) (wire.StopReason, *jsonrpc.Error) {
	switch {
	case x.ctx.Err() != nil:
		return wire.StopCancelled, nil //nolint:nilerr // the reason says it
	case failed == nil && ended.Cut:
		return wire.StopMaxTokens, nil
	case failed == nil && ended.Refused:
		return wire.StopRefusal, nil
	case failed == nil:
		return wire.StopEndTurn, nil
	case ended.Refused:
		x.view.note(failed.Message, failed.Refused)
		return wire.StopRefusal, nil
	case failed.Refused != nil && failed.Refused.Code == refusal.BoundReached:
		x.view.note("", failed.Refused)
		return wire.StopMaxTurnRequests, nil
	}
	return "", failedPrompt(failed)
}

// settleProtocol refuses a prompt of a session whose history the model could not read: the protocol
// of the model has changed since its first prompt.
func (x *exchange) settleProtocol() error {
	s := x.session
	route, ok := s.conn.face.options.Turns.Upstreams().Lookup(s.conn.face.options.Model)
	switch {
	case !ok: // the run says so
	case s.protocol == "":
		s.protocol = route.Rules.Protocol
	case s.protocol != route.Rules.Protocol:
		return refusal.New(refusal.BadRequest,
			"The session was held in another protocol with the model than is configured now. Begin another one.")
	}
	return nil
}

// nameSession gives a session its title, by its first prompt, and tells the client.
func (x *exchange) nameSession() {
	s := x.session
	s.mu.Lock()
	s.updated = time.Now().UTC().Truncate(time.Second)
	named := s.title == "" && x.content.title != ""
	if named {
		s.title = x.content.title
	}
	s.mu.Unlock()
	if named {
		title := &x.content.title
		x.send(wire.SessionInfoUpdate{Title: &title})
	}
}

// system is what the model is told of the session.
func (s *session) system() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "You work for the user of an editor, in the folder " + quoted(s.cwd) + "."
	if len(s.others) > 0 {
		names := make([]string, len(s.others))
		for i, path := range s.others {
			names[i] = quoted(path)
		}
		text += " These folders belong to the work, too: " + strings.Join(names, ", ") + "."
	}
	text += " Paths of files are absolute."
	if s.root != "" {
		text += " A command that does not say where it runs is run in " + quoted(s.root) + "."
	}
	return text
}
