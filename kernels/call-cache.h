/*
 * call-cache.h: kernels that were found before, so that many plans of nearly the same ops cost little. A
 * search for the best plan asks for the same few hundred calls again and again; describing one to a vendor
 * library is most of what a plan takes.
 */
#ifndef KERNELS_CALL_CACHE_H
#define KERNELS_CALL_CACHE_H

#include "kernels/device.h"

G_BEGIN_DECLS

RnCallCache *rn_call_cache_new (void);
void rn_call_cache_free (RnCallCache *cache);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (RnCallCache, rn_call_cache_free)

/*
 * rn_call_cache_find:
 * @limit: the device's workspace_limit; the same call has another kernel under another limit
 *
 * What rn_device_prepare gave for @call, without the kernel's state, or NULL. Lent.
 */
const RnPrepared *rn_call_cache_find (RnCallCache *cache, const RnOpCall *call, gsize limit);
/* Keeps @prepared, whose state is from now on the cache's. */
void rn_call_cache_add (RnCallCache *cache, const RnOpCall *call, gsize limit, const RnPrepared *prepared);

G_END_DECLS

#endif
