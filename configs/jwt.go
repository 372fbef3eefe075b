package configs

import (
	"errors"
	"strings"

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

// readJWT reads auth.jwt.
func readJWT(n Node, into *JWT) {
	*into = defaultTokens()
	o := &into.TokenOptions
	ok := n.Object(
		Field("issuer", func(n Node) { n.Text("the issuer of the tokens", &o.Issuer) }),
		Field("audience", func(n Node) { n.Text("whom the tokens are meant for", &o.Audience) }),
		Field("jwks_file", func(n Node) {
			n.Text("a file of keys", &o.JWKSFile)
			if o.JWKSFile != "" {
				o.JWKSFile = n.ResolvePath(o.JWKSFile)
			}
		}),
		Field("jwks_url", func(n Node) { n.Text("where the keys are", &o.JWKSURL) }),
		Field("algorithms", func(n Node) {
			o.Algorithms = []string{}
			n.Texts("signatures", &o.Algorithms)
		}),
		Field("clock_skew", func(n Node) { n.DurationOrZero("by how much clocks may differ", &o.ClockSkew) }),
		Field("claims", func(n Node) {
			n.Object(
				Field("name", func(n Node) { n.Text("the claim of a name", &o.Claims.Name) }),
				Field("agents", func(n Node) { n.Text("the claim of agents", &o.Claims.Agents) }),
				Field("workspace", func(n Node) { n.Text("the claim of a workspace", &o.Claims.Workspace) }),
				Field("projects", func(n Node) { n.Text("the claim of projects", &o.Claims.Projects) }),
				Field("operator", func(n Node) { n.Text("the claim of operators", &o.Claims.Operator) }),
			)
		}),
		Field("refresh", func(n Node) { n.Duration("how often the keys are fetched", &o.Refresh) }),
		Field("keep_for", func(n Node) { n.Duration("how long keys serve on while their source is away", &o.StaleIfError) }),
		Field("timeout", func(n Node) { n.Duration("how long fetching the keys may take", &o.Timeout) }),
		Field("start_within", func(n Node) { n.Duration("how long the start waits for the keys", &o.StartupTimeout) }),
		Field("start_without_keys", func(n Node) { n.Bool("whether to start while the keys cannot be had", &o.StartWithoutKeys) }),
		Field("ca_file", func(n Node) { n.Text("a file of certificates", &into.CAFile) }),
	)
	if !ok {
		return
	}
	reportOptionErrors(n, o.Validate())
}

// reportOptionErrors reports each option that cannot be used, at its key.
func reportOptionErrors(n Node, err error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			reportOptionErrors(n, e)
		}
		return
	}
	var fault *identity.OptionError
	if errors.As(err, &fault) {
		n.At(Pointer(strings.Split(fault.Option, "."))).Fail("%s", fault.Error())
	}
}
