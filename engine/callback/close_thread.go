package callback

import (
	"context"
	"strings"
	"sync"

	"github.com/callgate/callgate/internal/safe"
)

// CloseThread notifies every server, at the same time and each once, that a thread is closed,
// and ignores the responses. It returns when all have answered or failed; those that have not
// answered fail when ctx ends.
func (c *Client) CloseThread(ctx context.Context, thread string) {
	if c.servers == nil {
		return
	}
	var all sync.WaitGroup
	begun := map[string]bool{}
	for _, server := range c.servers() {
		at, err := notificationURL(server, "/close_thread")
		if err != nil {
			continue
		}
		// Tools that are stated by themselves, and alike, may be on one server.
		key := at.String() + " " + strings.Join(server.Addresses, " ") + " " + server.Credential.Key()
		if begun[key] {
			continue
		}
		begun[key] = true
		all.Go(func() {
			_ = safe.Do(func() error { c.notify(ctx, server, at, map[string]string{"thread_id": thread}); return nil })
		})
	}
	all.Wait()
}
