package configs

import (
	"errors"
	"strings"

	"github.com/callgate/callgate/configs/document"
	"github.com/callgate/callgate/identity"
	"github.com/callgate/callgate/refusal"
)

// JWT sets whose tokens are trusted, with auth.mode jwt.
type JWT struct {
	identity.TokenOptions
	// CAFile names certificates in PEM that are trusted for the issuer instead of the
	// system's; CA is its content.
	CAFile, CA string
}

func defaultTokens() JWT {
	return JWT{TokenOptions: identity.TokenOptions{ClockSkew: identity.DefaultClockSkew}}
}

// readJWT reads auth.jwt.
func readJWT(n document.Node, into *JWT) {
	*into = defaultTokens()
	o := &into.TokenOptions
	ok := n.Object(
		document.Field("issuer", func(n document.Node) { n.Text("the issuer of the tokens", &o.Issuer) }),
		document.Field("audience", func(n document.Node) { n.Text("whom the tokens are meant for", &o.Audience) }),
		document.Field("jwks_file", func(n document.Node) {
			n.Text("a file of keys", &o.JWKSFile)
			if o.JWKSFile != "" {
				o.JWKSFile = n.ResolvePath(o.JWKSFile)
			}
		}),
		document.Field("jwks_url", func(n document.Node) { n.Text("where the keys are", &o.JWKSURL) }),
		document.Field("algorithms", func(n document.Node) {
			o.Algorithms = []string{}
			n.Texts("signatures", &o.Algorithms)
		}),
		document.Field("clock_skew", func(n document.Node) { n.DurationOrZero("by how much clocks may differ", &o.ClockSkew) }),
		document.Field("claims", func(n document.Node) {
			n.Object(
				document.Field("name", func(n document.Node) { n.Text("the claim of a name", &o.Claims.Name) }),
				document.Field("agents", func(n document.Node) { n.Text("the claim of agents", &o.Claims.Agents) }),
				document.Field("workspace", func(n document.Node) { n.Text("the claim of a workspace", &o.Claims.Workspace) }),
				document.Field("projects", func(n document.Node) { n.Text("the claim of projects", &o.Claims.Projects) }),
				document.Field("operator", func(n document.Node) { n.Text("the claim of operators", &o.Claims.Operator) }),
			)
		}),
		document.Field("refresh", func(n document.Node) { n.Duration("how often the keys are fetched", &o.Refresh) }),
		document.Field("stale_if_error", func(n document.Node) {
			n.Duration("how long keys are used while their source is away", &o.StaleIfError)
		}),
		document.Renamed("keep_for", "stale_if_error"),
		document.Field("timeout", func(n document.Node) { n.Duration("how long fetching the keys may take", &o.Timeout) }),
		document.Field("startup_timeout", func(n document.Node) { n.Duration("how long the start waits for the keys", &o.StartupTimeout) }),
		document.Renamed("start_within", "startup_timeout"),
		document.Field("start_without_keys", func(n document.Node) { n.Bool("whether to start while the keys cannot be had", &o.StartWithoutKeys) }),
		document.Field("ca_file", func(n document.Node) { n.Text("a file of certificates", &into.CAFile) }),
	)
	if !ok {
		return
	}
	reportOptionErrors(n, o.Validate())
}

// reportOptionErrors reports each option that cannot be used, at its key.
func reportOptionErrors(n document.Node, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			reportOptionErrors(n, e)
		}
		return
	}
	var fault *identity.OptionError
	if errors.As(err, &fault) {
		n.At(refusal.Pointer(strings.Split(fault.Option, ".")...)).Fail("%s", fault.Error())
	}
}
