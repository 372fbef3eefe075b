package gateway

import (
	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/parser"
)

// execution is what becomes of a call: from its first entry in the store, over its
// dispatch, to its one outcome.
type execution struct {
	*call
	opened        bool             // the store has it, as one that was not dispatched
	stored        *storedCall      // what the store has of it, where this is all that is known
	priorAttempts int              // how often it was dispatched before
	expired       bool             // its tool has not answered by the time that it had promised to
	endedByOther  bool             // another has ended it before
	metadata      Metadata         // kept of its end beside the result
	onEnded       func()           // is called once the store has said how it ended; may be nil
	notifier      *events.Notifier // who hears of its progress and its logs; nil where nobody does
}

// executions are those of the calls of a decision, in their order. A text has one too,
// with which nothing is done.
func (d *Decision) executions() []*execution {
	all := make([]*execution, len(d.calls))
	for i, c := range d.calls {
		all[i] = &execution{call: c}
	}
	return all
}

// restore is a call as the store has it: enough to write its outcome down, and,
// where its tool is still what it was, to run it again.
func (k *Kernel) restore(stored *storedCall) *execution {
	config, task := k.config.Load(), &stored.Task
	c := &call{
		judgement: &judgement{
			kernel: k, config: config, mode: ModeCall,
			subject: Subject{Agent: task.Agent, Workspace: stored.Scope.Workspace, Project: stored.Scope.Project},
			request: &Request{ID: task.RequestID, CallerAddress: task.Caller, TraceID: task.Trace, Thread: task.Thread},
		},
		id: stored.ID, digest: task.Input, started: stored.Opened, judged: task,
		parsed: parser.Result{Kind: parser.Call, Name: task.Tool, HasName: true, Arguments: task.Arguments},
	}
	if tool, ok := config.Tools.LookupVersion(task.Tool, task.Version); ok && tool.Effect() == task.Effect {
		c.tool = tool
	}
	return &execution{call: c, stored: stored, priorAttempts: max(stored.Attempts-1, 0)}
}
