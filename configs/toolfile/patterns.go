package toolfile

// URLPattern, AddressPattern and versionPattern are what the registry checks of a URL, of an
// address or a prefix, and of a version, as far as a schema says it.
const (
	URLPattern     = `^https?://[^#]+$`
	AddressPattern = `^[0-9a-fA-F.:]+(/[0-9]{1,3})?$`
	versionPattern = `^[0-9]+\.[0-9]+\.[0-9]+([-+].*)?$`
)
