package app

import "github.com/callgate/callgate/engine"

// onBreaker tells operators that a tool's server is away, or is back. That calls
// are refused for it is counted alone: there may be many.
func (o Options) onBreaker(e engine.BreakerEvent) {
	o.Metrics.Breaker(string(e.Kind))
	switch e.Kind {
	case engine.BreakerOpened:
		o.Logger.Error("a tool does not answer; its calls are refused", "tool", e.Tool, "version", e.Version, "cause", errorText(e.Cause))
	case engine.BreakerClosed:
		o.Logger.Info("a tool answers again", "tool", e.Tool, "version", e.Version)
	}
}

// errorText is what an operator may read of a cause.
func errorText(cause error) string {
	if cause == nil {
		return ""
	}
	return cause.Error()
}
