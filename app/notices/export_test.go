package notices

import "time"

// NewStopped returns a sender that sends when Round is called. Each request has a time.
func NewStopped(deps Deps, timeout time.Duration) *Sender {
	s := newSender(deps)
	s.timeout = timeout
	return s
}

// Start has the sender send by itself.
func (s *Sender) Start() { go s.run() }

// Round sends what is due.
func (s *Sender) Round() (more bool) { return s.round() }

// Parallel is how many notices are sent at the same time.
const Parallel = parallel
