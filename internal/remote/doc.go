// Package remote is the access to one runtime: a client of its Kubernetes API with one rate limit, a deadline for every
// call, typed errors, and a mapping from kinds to resources that needs no discovery for the kinds that are known.
//
// # Overview
//
// A Client belongs to one runtime. It speaks HTTP itself, so that the bytes of a bundle are sent as they are and answers
// are asked for as metadata only wherever nobody reads the rest. Component reconcilers that want typed objects get a
// controller-runtime client over the same connection, limits and counters by Client.Client.
//
// Every request passes through the same gate, in this order: a slot of MaxInFlight, a token of the rate limit, the
// runtime's address and credentials of the moment, the count by verb, the deadline, the bound on the answer's size. Slots and
// tokens are the client's own: a client is of one runtime, and none takes them from another. Connecting has deadlines of its own
// (3 s, and 5 s for TLS); a server that has been silent for half a minute gets Options.Contact for its first answer.
//
// # Mapping
//
// Client.Resource maps a kind by the table of built-in kinds, then by what was declared (the kinds of the catalogue's
// and the bundle's CRDs), and only then asks the runtime: one aggregated discovery document, revalidated by its ETag. An
// APIService that does not answer fails the kinds of its own group only.
//
// # Answers
//
// The last argument of Get, Create, Apply and Patch takes the answer: a *metav1.PartialObjectMetadata asks for the metadata
// only, an *unstructured.Unstructured or any other JSON type for the whole object, nil for nothing. It is overwritten, and
// undefined after an error.
//
// Metadata of one object is asked for as Kubernetes' protobuf, and as JSON where a server does not have that. Requests of a context from
// cluster.InTurn go over a connection of HTTP/1.1 of their own, on the goroutine that asks, except large ones, those through a proxy, without TLS or
// to a server without HTTP/1.1; all others share one of HTTP/2. Client.ApplyEach sends up to eight of them before the first is answered, and
// no longer does so to a server that has left some unanswered.
//
// # Watches
//
// Client.WatchMeta is one watch of a kind's metadata. It passes the gate like any request, but gives its slot back once it has
// begun, and has a deadline of its own. Whoever watches for longer makes one watch after the other.
//
// # Errors
//
// Each failed request is an *Error with a Reason; the sentinels (ErrNotFound, ErrThrottled …) match it with errors.Is,
// and where the server sent a Status, the functions of k8s.io/apimachinery/pkg/api/errors work on it too. Transient
// failures are retried within the call where a second attempt does no harm. No error carries credentials or, for Secrets,
// what the server says beyond reason and field.
//
// # Invariants
//
//   - An answer is complete or an error: half a list is never a short list.
//   - An answer that is not Kubernetes' own (a proxy's page, a redirect) is ErrUnexpected, never "not found".
//   - A call ends when its context does, whatever it waits for.
//   - No goroutine outlives a call but those of open connections, and what sends a closed connection's last bytes, for a second at
//     most; a client that nobody uses holds no connection once Close was called.
//
// # Imports
//
// The package implements the contract of internal/cluster. It may import that, internal/kind, k8s.io/apimachinery,
// k8s.io/client-go, the discovery types of k8s.io/api, controller-runtime's client, go.yaml.in/yaml/v2 and golang.org/x/time/rate; nothing
// else of this repository.
package remote
