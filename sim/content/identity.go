package content

import (
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Identity is what makes an object one of its kind.
type Identity struct {
	UID             types.UID
	ResourceVersion uint64
	Created         time.Time
	// Generation is left out where it is 0.
	Generation uint32
}

// UID makes the UID of the object that a cluster, known by its seed, made at a resource version. The same input gives the
// same UID, so that nobody needs to keep it.
func UID(seed, birth uint64) types.UID {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], mix(seed^mix(birth)))
	binary.BigEndian.PutUint64(b[8:], mix(mix(seed)+birth))
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	var out [36]byte
	at := 0
	for i, c := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			out[at] = '-'
			at++
		}
		hex.Encode(out[at:], []byte{c})
		at += 2
	}
	return types.UID(out[:])
}

// mix is the finaliser of SplitMix64: each bit of the result depends on each of the input.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// AppendObject appends the object's JSON, in an API version that may be another than the stored one.
func (c *Content) AppendObject(dst []byte, apiVersion string, id Identity) []byte {
	dst = appendHead(dst, apiVersion, c.Kind)
	dst = c.appendMeta(dst, id)
	if len(c.rest) > 0 {
		dst = append(append(dst, ','), c.rest...)
	}
	return append(dst, '}')
}

// AppendMetadata appends the PartialObjectMetadata of the object.
func (c *Content) AppendMetadata(dst []byte, id Identity) []byte {
	dst = appendHead(dst, "meta.k8s.io/v1", "PartialObjectMetadata")
	return append(c.appendMeta(dst, id), '}')
}

// AppendItem appends the object as an item of a list of its kind: it says neither API version nor kind.
func (c *Content) AppendItem(dst []byte, id Identity) []byte {
	dst = append(dst, `{"metadata":`...)
	dst = c.appendMeta(dst, id)
	if len(c.rest) > 0 {
		dst = append(append(dst, ','), c.rest...)
	}
	return append(dst, '}')
}

func appendHead(dst []byte, apiVersion, kind string) []byte {
	dst = append(dst, `{"kind":`...)
	dst = strconv.AppendQuote(dst, kind)
	dst = append(dst, `,"apiVersion":`...)
	dst = strconv.AppendQuote(dst, apiVersion)
	return append(dst, `,"metadata":`...)
}

func (c *Content) appendMeta(dst []byte, id Identity) []byte {
	dst = append(dst, `{"uid":"`...)
	dst = append(dst, id.UID...)
	dst = append(dst, `","creationTimestamp":"`...)
	dst = id.Created.UTC().AppendFormat(dst, time.RFC3339)
	if id.ResourceVersion != 0 { // a dry run has none
		dst = append(dst, `","resourceVersion":"`...)
		dst = strconv.AppendUint(dst, id.ResourceVersion, 10)
	}
	dst = append(dst, '"')
	if id.Generation != 0 {
		dst = append(dst, `,"generation":`...)
		dst = strconv.AppendUint(dst, uint64(id.Generation), 10)
	}
	if len(c.meta) > 0 {
		dst = append(append(dst, ','), c.meta...)
	}
	return append(dst, '}')
}
