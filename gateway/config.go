package gateway

import (
	"errors"
	"fmt"
	"time"

	"github.com/callgate/callgate/gateway/hook"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/policy"
	"github.com/callgate/callgate/ratelimit"
	"github.com/callgate/callgate/registry"
	"github.com/callgate/callgate/store/approval"
)

// Authenticator returns the principal of a credential, or nil.
type Authenticator interface {
	Authenticate(credential string) *identity.Principal
}

// Config holds the parts of one configuration that the kernel uses. It is immutable; a
// judgement pins the one that it started with.
type Config struct {
	Output     parser.Options
	Tools      *registry.Registry
	Policy     *policy.Policy
	Workspaces policy.Workspaces
	Agents     map[string]bool // that a project or a principal names
	Limits     *ratelimit.Limits
	// Defaults fill in the members that a request without a principal omits.
	Defaults Subject
	// AgentRequired requires each call to name its agent: a completion with the member
	// "agent"; a native call, which has no such member, by its request. The principal and
	// Defaults do not fill it in then.
	AgentRequired bool
	// Hooks look at arguments and results; nil: there are none.
	Hooks *hook.Set
	// Identity authenticates credentials; nil if none are required.
	Identity Authenticator
	// Approvals are the rules by which people approve calls, and People tells what voters may
	// do now; nil: nothing. ApprovalWait is how long a request waits for them whose caller
	// cannot be told later.
	Approvals    approval.Rules
	People       approval.People
	ApprovalWait time.Duration
	// ApprovalPages is the part before the id in the URL at which people decide an
	// approval; empty: there is none.
	ApprovalPages string
	// Threads says what calls are to the threads that conditions of the policy ask for.
	Threads Threads
	// Beside is the policy of a candidate: what its conditions ask of the past is kept as well. It may be nil.
	Beside *policy.Policy
	Digest string // of the configuration

	asked            *asked            // of the past by conditions; nil: nothing
	places           *places           // of Workspaces
	openAINames      *registry.NameMap // of the tools, to OpenAI's alphabet
	oxpNames         *registry.NameMap // likewise, to OXP's
	maxCallbackBytes int64             // the longest result of a tool that calls back
}

// Threads says what calls are to threads.
type Threads struct {
	// DefaultLabels are those of tools that state none.
	DefaultLabels []string
	// ShareUnnamed says that all requests of a caller that name no thread are one; else they are in none.
	ShareUnnamed bool
}

// runCallback is the type of tools that only accept a call.
const runCallback = "callback"

// prepare returns the configuration with what is looked up for each call. The configuration
// itself is not changed: others may judge by it.
func (s *Config) prepare() (*Config, error) {
	names, answer := []string{}, int64(0)
	for _, entry := range s.Tools.Entries() {
		names = append(names, entry.Name())
		if run := entry.SharedRun(); run.Type == runCallback {
			answer = max(answer, run.MaxResultBytes)
		}
	}
	wire, err := registry.NewNameMap(names, registry.OpenAI())
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	ids, err := registry.NewNameMap(names, registry.OXP())
	if err != nil {
		return nil, fmt.Errorf("gateway: %w", err)
	}
	own := *s
	own.openAINames, own.oxpNames, own.maxCallbackBytes = wire, ids, answer
	own.places = newPlaces(s.Workspaces, s.Policy, s.Tools.Len())
	if own.asked, err = newAsked(&own); err != nil {
		return nil, err
	}
	return &own, nil
}

// namesFor is the map to the names of an alphabet. Of one that is not known there
// are no names.
func (s *Config) namesFor(of Alphabet) *registry.NameMap {
	switch of {
	case OpenAI:
		return s.openAINames
	case OXP:
		return s.oxpNames
	}
	return &registry.NameMap{}
}

// validate returns an error if a part is missing, since its check could not be made.
func (s *Config) validate() error {
	switch {
	case s == nil:
		return errors.New("gateway: no configuration")
	case s.Tools == nil:
		return errors.New("gateway: a configuration without tools")
	case s.Policy == nil:
		return errors.New("gateway: a configuration without a policy")
	case s.Limits == nil:
		return errors.New("gateway: a configuration without limits")
	}
	return nil
}

// resolve looks up the workspace and the project of a subject.
func (s *Config) resolve(subject Subject, p *identity.Principal) scope {
	return s.places.Resolve(subject, p)
}
