package calls

import "sync"

const (
	// maxClosing bounds the threads of which servers are being notified, and
	// maxClosingPerPrincipal those of one principal.
	maxClosing             = 32
	maxClosingPerPrincipal = maxClosing / 4
)

// closings counts the threads that are being closed, by their principals. The zero value has
// none.
type closings struct {
	mu          sync.Mutex
	all         int
	byPrincipal map[string]int
}

// Begin reports whether there is room for another; if so, the caller calls End. Without
// credentials all callers are one, which may have all of it.
func (c *closings) Begin(principal string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= maxClosing || principal != "" && c.byPrincipal[principal] >= maxClosingPerPrincipal {
		return false
	}
	if c.byPrincipal == nil {
		c.byPrincipal = map[string]int{}
	}
	c.all++
	c.byPrincipal[principal]++
	return true
}

// End makes room for another thread of the principal.
func (c *closings) End(principal string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.byPrincipal[principal]--; c.byPrincipal[principal] == 0 {
		delete(c.byPrincipal, principal)
	}
}
