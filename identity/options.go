package identity

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/internal/netx"
)

// The defaults and bounds of TokenOptions.
const (
	// DefaultClockSkew is the default of the configuration. It is not the default of
	// the option itself, whose zero value tolerates nothing.
	DefaultClockSkew      = 30 * time.Second
	MaxClockSkew          = 2 * time.Minute
	DefaultRefresh        = 5 * time.Minute
	minRefresh            = minRefetchInterval
	maxRefresh            = 24 * time.Hour
	DefaultStaleIfError   = 24 * time.Hour
	maxStaleIfError       = 7 * 24 * time.Hour
	DefaultTimeout        = 5 * time.Second
	maxTimeout            = time.Minute
	DefaultStartupTimeout = 30 * time.Second
	maxStartupTimeout     = 10 * time.Minute
)

// minRefetchInterval is the least time from a fetch to one because of an unknown kid.
const minRefetchInterval = 10 * time.Second

// DefaultAlgorithms are the signature algorithms that are accepted if none are configured.
func DefaultAlgorithms() []string { return []string{"RS256", "ES256", "EdDSA"} }

// ClaimNames are the claims that a principal is read from. Each is a member at
// the top of the claims, matched byte for byte; an empty one is the default.
type ClaimNames struct {
	Name string `key:"name" of:"the claim of a name"` // default "sub": printable ASCII of at most 255 bytes
	// default "callgate_agents": a list of strings, or one string of names between single spaces
	Agents    string `key:"agents" of:"the claim of agents"`
	Workspace string `key:"workspace" of:"the claim of a workspace"` // default "callgate_workspace": a string
	Projects  string `key:"projects" of:"the claim of projects"`     // default "callgate_projects": as Agents
	Operator  string `key:"operator" of:"the claim of operators"`    // default "callgate_operator": true or false; absent is false
	// default "callgate_approves": as Agents, or an empty list; absent is none
	Approves string `key:"approves" of:"the claim of who approves calls"`
}

// TokenOptions state whose tokens are accepted, for which audience, and what is read from
// them. Issuer and Audience are required.
type TokenOptions struct {
	// The claim iss, byte for byte (RFC 7519, section 4.1.1). Without jwks_file and jwks_url, its keys
	// are found there (OpenID Connect Discovery 1.0): then a URL of https, or of http to loopback.
	Issuer string `key:"issuer" of:"the issuer of the tokens" pattern:"^[!-\"$-~]+$" example:"https://id.example.com"`
	// One of the audiences of the claim aud must be this.
	Audience string `key:"audience" of:"whom the tokens are meant for" example:"callgate"`
	// A file of keys, instead of discovery. At most one of jwks_file and jwks_url, beside issuer: some
	// issuers sign for many tenants with one key.
	JWKSFile string `key:"jwks_file" of:"a file of keys" example:"#jwks.json"`
	// Where the keys are, instead of discovery.
	JWKSURL string `key:"jwks_url" of:"where the keys are" example:"#https://id.example.com/keys"`
	// Accepted signatures: RS, PS and ES with 256, 384 and 512, and EdDSA (Ed25519). Never "none" or
	// the symmetric HS.
	Algorithms []string `key:"algorithms" of:"signatures" list:"unique filled" example:"[RS256, ES256, EdDSA]"`
	// By how much exp, nbf and iat may be off: at most 2m.
	ClockSkew time.Duration `key:"clock_skew" of:"by how much clocks may differ" range:"0.."`
	// The claims that say who a caller is and what it may do.
	Claims ClaimNames `key:"claims" example:"{name: sub, agents: callgate_agents, workspace: callgate_workspace, projects: callgate_projects, operator: callgate_operator, approves: callgate_approves}"`

	// How often the keys are fetched; a tenth of it is random.
	Refresh time.Duration `key:"refresh" of:"how often the keys are fetched" example:"5m"`
	// How long the last confirmed keys are used while the issuer does not answer, or not validly: at
	// least refresh.
	StaleIfError time.Duration `key:"stale_if_error" of:"how long keys are used while their source is away" example:"24h"`
	// Bounds one fetch, discovery included.
	Timeout time.Duration `key:"timeout" of:"how long fetching the keys may take" example:"5s"`
	// How long the start waits for the first keys.
	StartupTimeout time.Duration `key:"startup_timeout" of:"how long the start waits for the keys" example:"30s"`
	// Start without keys, and refuse every caller until there are some.
	StartWithoutKeys bool `key:"start_without_keys" of:"whether to start while the keys cannot be had"`

	// RootCAs are trusted for the issuer's certificate; nil means the system's.
	RootCAs *x509.CertPool
	// Now is the clock that tokens are judged by; nil means time.Now. After is the timer
	// of refreshes; nil means time.After. Random returns numbers in [0, 1) and is called by
	// one goroutine at a time; nil means math/rand/v2.
	Now    func() time.Time
	After  func(time.Duration) <-chan time.Time
	Random func() float64

	// OnRefused is called by Authenticate with the reason for a refusal. It must not
	// block, and must be safe for concurrent use. It may be nil.
	OnRefused func(Reason)
	// OnRefresh is called by Start and Run after each fetch, by one at a time. It may be nil.
	OnRefresh func(RefreshResult)
}

// RefreshResult is the result of one fetch of the keys.
type RefreshResult struct {
	Keys     int   // that are now in use
	Unusable int   // keys of the set that no token can be verified with
	Err      error // of a fetch that failed, so that the keys from before stay; names the source, never a token
}

// OptionError is one option that cannot be used. Option is its name in a
// configuration, such as "audience" or "claims.agents".
type OptionError struct {
	Option          string
	Found, Expected string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("%s: found %s; expected %s", e.Option, e.Found, e.Expected)
}

// Validate returns every option that cannot be used, as joined *OptionError.
// The key file is not read.
func (o TokenOptions) Validate() error {
	var all []error
	fault := func(option, found, expected string) {
		all = append(all, &OptionError{option, found, expected})
	}
	const plainIssuer = "the issuer as its tokens state it: printable ASCII without spaces or #, at most 255 bytes"
	switch {
	case o.Issuer == "":
		fault("issuer", "nothing", plainIssuer)
	case !isASCIIName(o.Issuer) || strings.ContainsAny(o.Issuer, " #"):
		fault("issuer", "a text of another form", plainIssuer)
	case o.JWKSFile == "" && o.JWKSURL == "":
		if found := urlProblem(o.Issuer, false); found != "" {
			fault("issuer", found, "a URL of https (http only to loopback) without user, query and fragment, or else jwks_file or jwks_url, which say where the keys are")
		}
	}
	if o.JWKSFile != "" && o.JWKSURL != "" {
		fault("jwks_url", "both jwks_file and jwks_url", "one of them, or neither")
	}
	if o.JWKSURL != "" {
		if found := urlProblem(o.JWKSURL, true); found != "" {
			fault("jwks_url", found, "a URL of https (http only to loopback) without user and fragment")
		}
	}
	if o.Audience == "" {
		fault("audience", "nothing", "the name that tokens meant for this gateway carry in aud")
	} else if !isName(o.Audience) {
		fault("audience", "a text with invisible characters, spaces at an end, or over 255 bytes", "a plain text")
	}
	o.validateAlgorithms(fault)
	o.Claims.validate(fault)
	o.validateTimes(fault)
	return errors.Join(all...)
}

func (o TokenOptions) validateAlgorithms(fault func(option, found, expected string)) {
	const expected = "some of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA, each once"
	if o.Algorithms != nil && len(o.Algorithms) == 0 {
		fault("algorithms", "an empty list", expected)
	}
	for i, name := range o.Algorithms {
		if _, known := keyTypes[name]; !known {
			fault("algorithms", fmt.Sprintf("%.20q", name), expected)
		} else if slices.Contains(o.Algorithms[:i], name) {
			fault("algorithms", name+" twice", expected)
		}
	}
}

func (o TokenOptions) validateTimes(fault func(option, found, expected string)) {
	o = o.withDefaults()
	for _, d := range []struct {
		option           string
		value, low, high time.Duration
	}{
		{"clock_skew", o.ClockSkew, 0, MaxClockSkew},
		{"refresh", o.Refresh, minRefresh, maxRefresh},
		{"stale_if_error", o.StaleIfError, o.Refresh, maxStaleIfError},
		{"timeout", o.Timeout, time.Millisecond, maxTimeout},
		{"startup_timeout", o.StartupTimeout, time.Millisecond, maxStartupTimeout},
	} {
		if d.value < d.low || d.value > d.high {
			fault(d.option, duration.Spell(d.value), duration.Spell(d.low)+" to "+duration.Spell(d.high))
		}
	}
}

// sameSource reports whether the keys of two options come from one source, verified by the
// same certificates.
func (o TokenOptions) sameSource(p TokenOptions) bool {
	discovered := o.JWKSFile == "" && o.JWKSURL == ""
	return o.JWKSFile == p.JWKSFile && o.JWKSURL == p.JWKSURL && (!discovered || o.Issuer == p.Issuer) && o.RootCAs.Equal(p.RootCAs)
}

// withDefaults replaces zero values by their defaults.
func (o TokenOptions) withDefaults() TokenOptions {
	if o.Algorithms == nil {
		o.Algorithms = DefaultAlgorithms()
	}
	o.Refresh = cmp.Or(o.Refresh, DefaultRefresh)
	o.StaleIfError = cmp.Or(o.StaleIfError, DefaultStaleIfError)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.StartupTimeout = cmp.Or(o.StartupTimeout, DefaultStartupTimeout)
	o.Claims = o.Claims.withDefaults()
	return o
}

func (n ClaimNames) withDefaults() ClaimNames {
	return ClaimNames{
		Name:      cmp.Or(n.Name, "sub"),
		Agents:    cmp.Or(n.Agents, "callgate_agents"),
		Workspace: cmp.Or(n.Workspace, "callgate_workspace"),
		Projects:  cmp.Or(n.Projects, "callgate_projects"),
		Operator:  cmp.Or(n.Operator, "callgate_operator"),
		Approves:  cmp.Or(n.Approves, "callgate_approves"),
	}
}

// validate rejects a registered claim (RFC 7519, section 4.1), and a claim that two parts
// of a principal would be read from.
func (n ClaimNames) validate(fault func(option, found, expected string)) {
	n = n.withDefaults()
	seen := map[string]string{}
	for _, c := range []struct{ option, claim string }{
		{"claims.name", n.Name}, {"claims.agents", n.Agents}, {"claims.workspace", n.Workspace}, {"claims.projects", n.Projects},
		{"claims.operator", n.Operator}, {"claims.approves", n.Approves},
	} {
		const expected = "the name of a claim at the top of the token, of its own and none that is registered"
		switch {
		case !isName(c.claim):
			fault(c.option, "a text with invisible characters, spaces at an end, or over 255 bytes", expected)
		case slices.Contains([]string{"iss", "aud", "exp", "nbf", "iat", "jti"}, c.claim), c.claim == "sub" && c.option != "claims.name":
			fault(c.option, "the registered claim "+c.claim, expected)
		case seen[c.claim] != "":
			fault(c.option, "the claim of "+seen[c.claim], expected)
		}
		seen[c.claim] = c.option
	}
}

// urlProblem describes what is wrong with a URL that keys are to come from, or returns "".
// It does not quote the URL, which may hold a password.
func urlProblem(text string, query bool) string {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "":
		return "no URL with a host"
	case u.User != nil:
		return "a URL with a user"
	case u.Fragment != "" || strings.Contains(text, "#"):
		return "a URL with a fragment"
	case !query && (u.RawQuery != "" || u.ForceQuery):
		return "a URL with a query"
	case u.Scheme == "https", u.Scheme == "http" && netx.IsLoopbackHost(u.Hostname()): // dialing checks what the name resolves to
		return ""
	case u.Scheme == "http":
		return "a URL of http beyond loopback"
	}
	return "a URL of another scheme"
}
