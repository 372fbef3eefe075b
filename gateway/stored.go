package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/callgate/callgate/gateway/violations"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store"
	"github.com/callgate/callgate/tool"
)

// StoreWait bounds how long a call waits for the store.
const StoreWait = 5 * time.Second

// QuestionReader reads the questions of tools.
type QuestionReader interface {
	// Questions returns what the tool of a principal's call asked when the call ended,
	// and the digest of that call; nil where it has not ended or asked nothing. The
	// error of a call that is not there is store.ErrNotFound.
	Questions(ctx context.Context, id, principal string) (questions *tool.InputRequired, callDigest string, err error)
}

// StoreCall is the call as the store opens it, under a key or none.
func (c *Call) StoreCall(key string) store.Call {
	return store.Call{ID: c.id, Scope: c.storeScope(), Key: key, Digest: c.idempotencyDigest()}
}

// StoreTask is the part of the call that the store keeps once it is dispatched. A call with
// answers has the effect once: its answers are not stored, so it cannot be dispatched
// again. So has one that is handed over: the application runs it, and nothing here may.
func (c *Call) StoreTask() store.Task {
	effect := c.tool.Effect()
	if c.mayBringAnswers() || c.mode == ModeEnforce {
		effect = "once"
	}
	return store.Task{
		Tool: c.tool.Name(), Version: c.tool.Version(), Effect: effect, Agent: c.subject.Agent, Arguments: c.parsed.Arguments,
		Caller: c.caller(), RequestID: c.request.ID, Trace: c.request.TraceID, Thread: c.request.Thread, Group: c.storedGroup(),
		Ledger: c.storedLedger(),
		Input:  c.inputDigest(), Config: c.config.Digest, Using: c.usesUp(), Spends: c.alsoSpends(),
	}
}

// MayRepeat reports whether the stored result of a call may answer this one: it enters no thread but that which has its
// labels.
func (c *Call) MayRepeat(stored *store.Call) bool {
	return stored.Task.Ledger == "" || stored.Task.Ledger == c.keys().Thread
}

// idempotencyDigest hashes everything the result depends on that the key's scope does not
// cover: one agent must not be given the result of another.
func (c *Call) idempotencyDigest() string {
	preimage := strconv.AppendQuote(make([]byte, 0, 256), c.subject.Agent)
	preimage = strconv.AppendBool(append(preimage, ' '), c.input.Truncated)
	preimage = append(append(preimage, ' '), c.inputDigest()...)
	if n := c.input.Native; n != nil {
		preimage = strconv.AppendQuote(append(preimage, ' '), n.Name)
		preimage = strconv.AppendQuote(append(preimage, ' '), n.Wire)
		if n.Version != "" {
			preimage = strconv.AppendQuote(append(preimage, ' '), n.Version)
		}
	}
	if c.request.User != "" { // the tool may receive the user it acts for
		preimage = strconv.AppendQuote(append(preimage, " for "...), c.request.User)
	}
	return c.digests.Of(preimage)
}

// storeScope is the owner of the call: the principal, its workspace and its project.
func (c *judgement) storeScope() store.Scope {
	return store.Scope{Principal: principalName(c.principal), Workspace: c.subject.Workspace, Project: c.subject.Project}
}

// Restore returns a call as the store has it: enough to write its outcome down, and,
// where its tool is still what it was, to run it again (see Reapprove).
func (o Door) Restore(stored store.Call) *Call {
	config, task := o.kernel.config.Load(), &stored.Task
	c := &Call{
		judgement: &judgement{
			kernel: o.kernel, config: config, mode: ModeCall,
			subject: Subject{Agent: task.Agent, Workspace: stored.Scope.Workspace, Project: stored.Scope.Project},
			request: Request{ID: task.RequestID, CallerAddress: task.Caller, TraceID: task.Trace, Thread: task.Thread},
		},
		id: stored.ID, digests: digests{input: task.Input}, started: stored.Opened, held: held{stored: &stored},
		parsed: parsed{Result: parser.Result{Kind: parser.Call, Name: task.Tool, HasName: true, Arguments: task.Arguments}},
	}
	if tool, ok := config.Tools.LookupVersion(task.Tool, task.Version); ok && tool.Effect() == task.Effect {
		c.tool = tool
	}
	return c
}

// maxDispatches bounds how often a call is dispatched if each process dies with it.
const maxDispatches = 3

// Reapprove approves a call that the door restored to be dispatched again, or says why it must not be: it
// passed the checks when it was judged, and here its effect, its tool and its project must
// still allow it.
func (o Door) Reapprove(c *Call) (Approved, error) {
	switch {
	case c.held.stored == nil, c.kernel != o.kernel:
		return Approved{}, errors.New("it was not restored")
	case c.held.stored.Step != store.Dispatched:
		return Approved{}, fmt.Errorf("it is %q, not dispatched", c.held.stored.Step)
	case c.tool != nil && c.CallsBack():
		return Approved{}, errors.New("its tool calls back, and may have the call")
	case c.held.stored.Task.Effect != "read" && c.held.stored.Task.Effect != "idempotent":
		return Approved{}, errors.New("its effect may not be had twice")
	case c.tool == nil, c.kernel.withheld(c.parsed.Name, c.parsed.Name) != nil, !c.argumentsValid():
		return Approved{}, errors.New("its tool is not what it was")
	case c.runsAsCaller():
		return Approved{}, errors.New("its tool is called as its caller, whose token is not kept")
	case c.held.stored.Attempts >= maxDispatches:
		return Approved{}, errors.New("it was dispatched too often")
	}
	project, err := c.config.Workspaces.Project(c.subject.Agent, c.subject.Workspace, c.subject.Project)
	if err == nil && project == nil {
		err = errors.New("no project was entered")
	}
	if err != nil {
		return Approved{}, err
	}
	c.project = project
	return Approved{c}, nil
}

// argumentsValid reports whether the arguments still fit the schema of the tool.
func (c *Call) argumentsValid() bool {
	_, err := violations.ReadArguments(c.tool, c.parsed.Arguments, c.config.Output.MaxDepth)
	return err == nil
}

// ToolVersion returns a version of a tool; nil where it is not configured. The error is the
// refusal of one that may not be called now.
func (k *Kernel) ToolVersion(name, version string) (*registry.Entry, error) {
	tool, ok := k.config.Load().Tools.LookupVersion(name, version)
	if !ok {
		return nil, nil
	}
	if err := k.withheld(name, name); err != nil {
		return nil, err
	}
	return tool, nil
}

// usesUp are the approvals and grants that the dispatch of the call needs, and uses up: those
// that it passed by, and the one that it takes up.
func (c *Call) usesUp() []string {
	id := c.TakesUp()
	if id == "" || slices.Contains(c.approvals.using, id) {
		return c.approvals.using
	}
	return append(slices.Clone(c.approvals.using), id)
}

// alsoSpends are the approvals that the dispatch of the call uses up where they are left.
func (c *Call) alsoSpends() []string {
	id := c.TakesUp()
	return slices.DeleteFunc(slices.Clone(c.approvals.spends), func(spent string) bool { return spent == id })
}

// spent are the approvals that the dispatch of the call uses up beside those that it passes by.
func (c *Call) spent() []string {
	spent := c.alsoSpends()
	if id := c.TakesUp(); id != "" && !slices.Contains(c.approvals.using, id) {
		spent = append(spent, id)
	}
	return spent
}
