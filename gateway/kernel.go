package gateway

import (
	"context"
	"crypto/rand"
	"slices"
	"sync/atomic"
	"time"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/gateway/consent"
	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/gateway/journal"
	"github.com/callgate/callgate/gateway/trace"
	"github.com/callgate/callgate/history"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/refusal"
)

// Deps are the parts that a kernel uses beside a configuration, and that outlive each
// configuration. If a part is nil, calls that need it are refused.
type Deps struct {
	Limiter ratelimit.Limiter
	Journal Journal
	// Questions reads the tools' questions, for the check of answers.
	Questions QuestionReader
	// Consents tells what people have said to calls that need their approval; nil: nothing.
	Consents consent.Reader
	// Ledger keeps what threads have done, and Secret returns that of the values by which conditions count, nil where it
	// is not known yet; a nil function is one of this process.
	Ledger Ledger
	Secret func() *history.Secret
	// ThreadsWithCalls says that Ledger and the store of calls are one.
	ThreadsWithCalls bool
	// NoApprovers says that nobody but the caller can be asked for approvals: people have no
	// listener where they could decide. A call that needs others is refused, and not asked for.
	NoApprovers bool
	// Hooks asks the hooks that are programs of the operator; nil: each of them denies.
	Hooks hook.Asker
	// AwaitTool waits, for a while, for the server of a tool that has not listed its tools yet; nil
	// does not wait.
	AwaitTool func(ctx context.Context, name string)
	// HookObserver counts the verdicts of hooks; it may be nil.
	HookObserver hook.Observer
	// Observer receives every judgement and outcome; it may be nil.
	Observer Observer
	// Recent keeps the last judgements; it may be nil.
	Recent Recent
	// Shadow judges the same calls by another configuration; it may be nil.
	Shadow Shadow
	// Tracer takes the traces of calls; nil traces nothing.
	Tracer trace.Tracer
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// NewID makes an identifier that cannot be guessed; nil means crypto/rand.
	NewID func() string
	// RecordContent is how much of a completion the journal is given.
	RecordContent audit.Content
	// DeferOutcomes records outcomes after the answer: a crash can lose those of the calls
	// that were answered last.
	DeferOutcomes bool
	// Replica names this process in the journal.
	Replica string
}

// Journal is where decisions and outcomes are written down.
type Journal = journal.Log

// Observer counts. It must not block, and must be safe for concurrent use. agent and tool
// are names that the configuration knows; a name that a caller or a model made up is empty, and so
// is an agent for which the caller may not act.
type Observer interface {
	Judged(verdict string, refused *refusal.Error, agent, tool string)
	Stage(stage refusal.Stage, took time.Duration)
	Ended(outcome string, took time.Duration, agent, tool string)
	Recorded(durable bool, took time.Duration)
	// ThreadRefused counts a call that the policy refuses for what was done before: for labels, counts or results, or
	// since that is unknown. ThreadMoved counts answers whose conditions were evaluated again, since other calls had
	// changed what they ask.
	ThreadRefused(reason string)
	ThreadMoved()
}

// Kernel judges. It is safe for concurrent use.
type Kernel struct {
	config     atomic.Pointer[Config]
	quarantine atomic.Pointer[map[string]bool]          // tools that may not be called
	starting   atomic.Pointer[map[string]time.Duration] // tools that may not be called yet
	stops      atomic.Pointer[stops]                    // nil: nothing is stopped
	deps       Deps
	journal    *journal.Writer
	// onArguments are the checks of judge that read arguments.
	onArguments []check
}

// New returns a kernel that judges by a configuration.
func New(config *Config, deps Deps) (*Kernel, error) {
	k, _, err := NewWithDoor(config, deps)
	return k, err
}

// Door is the way from the judgements of one kernel to its tools. Who makes the kernel has it, and
// whoever is only given the kernel cannot let a call through.
type Door struct{ kernel *Kernel }

// NewWithDoor returns a kernel that judges by a configuration, and its door.
func NewWithDoor(config *Config, deps Deps) (*Kernel, Door, error) {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.NewID == nil {
		deps.NewID = newCallID
	}
	if deps.Secret == nil {
		own, err := history.NewSecret([]byte(rand.Text() + rand.Text()))
		if err != nil {
			return nil, Door{}, err
		}
		deps.Secret = func() *history.Secret { return own }
	}
	k := &Kernel{deps: deps, onArguments: slices.DeleteFunc(slices.Clone(judge), func(c check) bool { return !c.arguments })}
	var recorded func(bool, time.Duration)
	if deps.Observer != nil {
		recorded = deps.Observer.Recorded
	}
	k.journal = journal.NewWriter(deps.Journal, deps.Now, recorded, deps.DeferOutcomes)
	return k, Door{k}, k.Swap(config)
}

// Swap replaces the configuration for judgements that start from now on. An incomplete
// configuration is an error and changes nothing.
func (k *Kernel) Swap(config *Config) error {
	if err := config.validate(); err != nil {
		return err
	}
	prepared, err := config.prepare()
	if err != nil {
		return err
	}
	k.config.Store(prepared)
	return nil
}

// Writer writes to the journal of this kernel.
func (k *Kernel) Writer() *journal.Writer { return k.journal }

// Flush waits until every outcome is recorded. It returns an error if ctx ends first.
func (k *Kernel) Flush(ctx context.Context) error { return k.journal.Flush(ctx) }

// MaxCallbackBytes is the largest result of any tool that calls back, in bytes.
func (k *Kernel) MaxCallbackBytes() int64 { return k.config.Load().maxCallbackBytes }

// ParserOptions returns the bounds of completions that are judged now.
func (k *Kernel) ParserOptions() parser.Options { return k.config.Load().Output }

// Digest returns the digest of the configuration that judges now.
func (k *Kernel) Digest() string { return k.config.Load().Digest }
