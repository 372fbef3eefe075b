package app

import "github.com/callgate/callgate/internal/outbound"

// onBreaker logs that the circuit breaker of a tool has opened or closed. Calls that it
// refuses are only counted: there may be many.
func (o Options) onBreaker(e outbound.BreakerEvent) {
	o.Metrics.Breaker(string(e.Kind))
	switch e.Kind {
	case outbound.BreakerOpened:
		o.Logger.Error("circuit breaker opened: the tool does not answer, its calls are refused", "tool", e.Tool, "version", e.Version,
			"cause", errorText(e.Cause))
	case outbound.BreakerClosed:
		o.Logger.Info("circuit breaker closed: the tool answers again", "tool", e.Tool, "version", e.Version)
	}
}

// errorText is the text of an error, or "".
func errorText(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
