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
		document.Text("issuer", "the issuer of the tokens", &o.Issuer).Matching(`^[!-"$-~]+$`),
		document.Text("audience", "whom the tokens are meant for", &o.Audience),
		document.Field("jwks_file", func(n document.Node) {
			n.Text("a file of keys", &o.JWKSFile)
			if o.JWKSFile != "" {
				o.JWKSFile = n.ResolvePath(o.JWKSFile)
			}
		}),
		document.Text("jwks_url", "where the keys are", &o.JWKSURL),
		document.Field("algorithms", func(n document.Node) {
			o.Algorithms = []string{}
			n.Texts("signatures", &o.Algorithms)
			n.Unique()
			n.HasElements()
		}).Among(identity.KnownAlgorithms()...),
		document.DurationOrZero("clock_skew", "by how much clocks may differ", &o.ClockSkew),
		document.Group("claims",
			document.Text("name", "the claim of a name", &o.Claims.Name),
			document.Text("agents", "the claim of agents", &o.Claims.Agents),
			document.Text("workspace", "the claim of a workspace", &o.Claims.Workspace),
			document.Text("projects", "the claim of projects", &o.Claims.Projects),
			document.Text("operator", "the claim of operators", &o.Claims.Operator),
			document.Text("approves", "the claim of who approves calls", &o.Claims.Approves),
		),
		document.Duration("refresh", "how often the keys are fetched", &o.Refresh),
		document.Duration("stale_if_error", "how long keys are used while their source is away", &o.StaleIfError),
		document.Duration("timeout", "how long fetching the keys may take", &o.Timeout),
		document.Duration("startup_timeout", "how long the start waits for the keys", &o.StartupTimeout),
		document.Bool("start_without_keys", "whether to start while the keys cannot be had", &o.StartWithoutKeys),
		document.Text("ca_file", "a file of certificates", &into.CAFile),
	)
	n.Describes(func(s *document.Schema) { s.Required = []string{"issuer", "audience"} })
	if !ok {
		return
	}
	reportOptionErrors(n, o.Validate())
}

// reportOptionErrors reports each option that cannot be used, at its key.
func reportOptionErrors(n document.Node, err error) {
	for err := range document.Each(err) {
		var fault *identity.OptionError
		if errors.As(err, &fault) {
			n.At(refusal.Pointer(strings.Split(fault.Option, ".")...)).Fail("%s", fault.Error())
		}
	}
}
