package acpproxy

import (
	"context"
	"sync"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

// releaseWithin bounds how long the editor may take to end a terminal.
const releaseWithin = 5 * time.Second

// release ends a terminal that the agent does not get, or leaves behind.
func (p *Proxy) release(sessionID, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), releaseWithin)
	defer cancel()
	for _, method := range []string{wire.MethodTerminalKill, wire.MethodTerminalRelease} {
		_, _ = p.editor.Call(ctx, method, wire.TerminalRequest{SessionID: sessionID, TerminalID: id}) // there is no other way to end it
	}
}

// releaseAll ends all terminals of sessions whose agent is gone.
func (p *Proxy) releaseAll(of ...*session) {
	var ending sync.WaitGroup
	for _, s := range of {
		for _, id := range s.takeTerminals() {
			ending.Go(func() { p.release(s.id, id) })
		}
	}
	ending.Wait()
}

// takeTerminals returns the terminals of a session, which it has no longer.
func (s *session) takeTerminals() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.terminals {
		ids = append(ids, id)
	}
	clear(s.terminals)
	return ids
}
