package main

import "github.com/callgate/callgate/engine"

// breaker tells operators that a tool's server is away, or is back. That calls
// are refused for it is counted alone: there may be many.
func (w witnesses) breaker(e engine.BreakerEvent) {
	w.metrics.Breaker(string(e.Kind))
	switch e.Kind {
	case engine.BreakerOpened:
		w.logger.Error("a tool does not answer; its calls are refused", "tool", e.Tool, "version", e.Version, "cause", causeOf(e.Cause))
	case engine.BreakerClosed:
		w.logger.Info("a tool answers again", "tool", e.Tool, "version", e.Version)
	}
}

// causeOf is what an operator may read of a cause.
func causeOf(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
