#include <config.h>

#include "boxes/coder.h"

gboolean
rn_coder_encode (const RnBoxCoder *coder, RnBox anchor, RnBox gt, float deltas[4])
{
  float px = (anchor.x1 + anchor.x2) * 0.5f, py = (anchor.y1 + anchor.y2) * 0.5f;
  float pw = anchor.x2 - anchor.x1, ph = anchor.y2 - anchor.y1;
  float gx = (gt.x1 + gt.x2) * 0.5f, gy = (gt.y1 + gt.y2) * 0.5f;
  float gw = gt.x2 - gt.x1, gh = gt.y2 - gt.y1;
  gboolean finite = TRUE;

  deltas[0] = (gx - px) / pw;
  deltas[1] = (gy - py) / ph;
  deltas[2] = logf (gw / pw);
  deltas[3] = logf (gh / ph);
  for (int i = 0; i < 4; i++)
    {
      deltas[i] = (deltas[i] - coder->means[i]) / coder->stds[i];
      finite = finite && isfinite (deltas[i]);
    }
  return finite;
}

RnBox
rn_coder_decode (const RnBoxCoder *coder, RnBox anchor, const float deltas[4], float width, float height)
{
  float max_log = (float) fabs (log (coder->wh_ratio_clip));
  float d[4];

  for (int i = 0; i < 4; i++)
    d[i] = deltas[i] * coder->stds[i] + coder->means[i];

  float pw = anchor.x2 - anchor.x1, ph = anchor.y2 - anchor.y1;
  float x = (anchor.x1 + anchor.x2) * 0.5f + pw * d[0], y = (anchor.y1 + anchor.y2) * 0.5f + ph * d[1];
  float half_w = pw * expf (CLAMP (d[2], -max_log, max_log)) * 0.5f;
  float half_h = ph * expf (CLAMP (d[3], -max_log, max_log)) * 0.5f;
  RnBox box = { x - half_w, y - half_h, x + half_w, y + half_h };

  return coder->clip_border ? rn_box_clip (box, width, height) : box;
}
