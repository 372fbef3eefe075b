package configs

import (
	"errors"
	"strings"
	"time"

	"github.com/callgate/callgate/identity"
)

// JWT say whose tokens are believed, with auth.mode jwt.
type JWT struct {
	identity.TokenOptions
	// CAFile names certificates in PEM that are believed for the issuer instead of
	// the system's; CA is what it holds.
	CAFile, CA string
}

func defaultTokens() JWT {
	return JWT{TokenOptions: identity.TokenOptions{ClockSkew: identity.DefaultClockSkew}}
}

// tokens reads auth.jwt.
func (n node) tokens(into *JWT) {
	*into = defaultTokens()
	before := len(n.report.faults)
	o := &into.TokenOptions
	n.object(
		field{"issuer", func(n node) { n.text("the issuer of the tokens", &o.Issuer) }},
		field{"audience", func(n node) { n.text("whom the tokens are meant for", &o.Audience) }},
		field{"jwks_file", func(n node) {
			n.text("a file of keys", &o.JWKSFile)
			if o.JWKSFile != "" {
				o.JWKSFile = n.beside(o.JWKSFile)
			}
		}},
		field{"jwks_url", func(n node) { n.text("where the keys are", &o.JWKSURL) }},
		field{"algorithms", func(n node) {
			o.Algorithms = []string{}
			n.texts("signatures", &o.Algorithms)
		}},
		field{"clock_skew", func(n node) { n.span("by how much clocks may differ", &o.ClockSkew) }},
		field{"claims", func(n node) {
			n.object(
				field{"name", func(n node) { n.text("the claim of a name", &o.Claims.Name) }},
				field{"agents", func(n node) { n.text("the claim of agents", &o.Claims.Agents) }},
				field{"workspace", func(n node) { n.text("the claim of a workspace", &o.Claims.Workspace) }},
				field{"projects", func(n node) { n.text("the claim of projects", &o.Claims.Projects) }},
				field{"operator", func(n node) { n.text("the claim of operators", &o.Claims.Operator) }},
			)
		}},
		field{"refresh", func(n node) { n.duration("how often the keys are fetched", &o.Refresh) }},
		field{"keep_for", func(n node) { n.duration("how long keys serve on while their source is away", &o.StaleIfError) }},
		field{"timeout", func(n node) { n.duration("how long fetching the keys may take", &o.Timeout) }},
		field{"start_within", func(n node) { n.duration("how long the start waits for the keys", &o.StartupTimeout) }},
		field{"start_without_keys", func(n node) { n.flag("whether to start while the keys cannot be had", &o.StartWithoutKeys) }},
		field{"ca_file", func(n node) { n.text("a file of certificates", &into.CAFile) }},
	)
	if len(n.report.faults) > before {
		return
	}
	n.optionFaults(o.Validate())
}

// optionFaults reports each option that cannot be used, at its key.
func (n node) optionFaults(err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			n.optionFaults(e)
		}
		return
	}
	var fault *identity.OptionError
	if errors.As(err, &fault) {
		n.at(pointerOf(strings.Split(fault.Option, "."))).fail("%s", fault.Error())
	}
}

// span reads a duration that may be zero.
func (n node) span(of string, into *time.Duration) {
	if d, err := time.ParseDuration(n.Value); n.isString() && err == nil && d == 0 {
		*into = 0
		return
	}
	n.duration(of, into)
}
