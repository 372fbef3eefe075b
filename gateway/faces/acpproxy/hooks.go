package acpproxy

import (
	"context"
	"errors"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/refusal"
)

// hooked takes what hooks have left of a file's text for the answer to the agent.
func (r *request) hooked(output []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	read, ok := r.answer.(wire.ReadTextFileResponse)
	if !ok {
		return
	}
	o, _ := rawjson.Members(output)
	// Without the text the agent gets none: the hooks have seen no other.
	read.Content, _ = rawjson.String(o.Get("content"))
	r.answer = read
}

// hookTerminal has the hooks see what a command has written so far, which is a part of the result of
// the call that began it.
func (p *Proxy) hookTerminal(ctx context.Context, s *session, answer any) (any, *refusal.Error) {
	output, ok := answer.(wire.TerminalOutputResponse)
	if !ok || p.options.Executor == nil || p.options.Executor.Kernel.Config().Hooks == nil {
		return answer, nil
	}
	admission, err := p.admit(ctx, s)
	if err != nil {
		return nil, refusal.From(refusal.Identity, err)
	}
	left, err := admission.Hooks().Brought(ctx, hook.Result, toolTerminal, rawjson.Quote(output.Output))
	if err != nil {
		return nil, refusal.From(refusal.Wrap, err)
	}
	if output.Output, ok = rawjson.String(left); !ok {
		return nil, refusal.From(refusal.Wrap, errors.New("a text that is none any more"))
	}
	return output, nil
}
