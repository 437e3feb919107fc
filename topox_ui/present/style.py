"""How the projector view looks: type that grows with the window, no sidebar, ink on the page's colour throughout."""

from __future__ import annotations

from dataclasses import replace

from topox_core.figures.palette import Theme

# At 1280 x 720 the type is 28 px; a slide with many words has it smaller.
TYPE_PX, SCREEN_PX = 28, (1280, 720)
SIZES = ((760, 1.0), (950, 0.9), (1150, 0.8))
SMALLEST = 0.72


def projected(theme: Theme) -> Theme:
    """Return a theme for the projector: larger type, and nothing fainter than the ink."""
    return replace(theme, muted=theme.ink, scale=1.6)


def share_of_type(characters: int) -> float:
    """Return the share of the full type size for a slide with so many characters."""
    return next((share for most, share in SIZES if characters <= most), SMALLEST)


def projector_css(theme: Theme, share: float) -> str:
    """Return the style sheet of a slide whose type has a share of its full size."""
    high = 100 * TYPE_PX / SCREEN_PX[1] * share
    wide = 100 * TYPE_PX / SCREEN_PX[0] * share
    largest = TYPE_PX * 1.25 * share  # of a page of 1,600 px
    return f"""<style>
html {{ font-size: clamp(15px, min({high:.3f}vh, {wide:.3f}vw), {largest:.1f}px); }}
section[data-testid="stSidebar"], [data-testid="stExpandSidebarButton"], [data-testid="stHeader"] {{ display: none !important; }}
[data-testid="stMainBlockContainer"] {{ max-width: 1600px; padding: .6rem 1.2rem 84px !important; margin: 0 auto; }}
.st-key-steps {{ position: fixed !important; bottom: 14px; left: max(1.2rem, 50vw - 800px + 1.2rem); width: auto !important;
  right: max(1.2rem, 50vw - 800px + 1.2rem); background: {theme.page}; }}
[data-testid="stMain"] {{ outline: none !important; }} [data-testid="stMain"] [data-testid="stVerticalBlock"] {{ gap: .45rem; }}
.at {{ font-size: max(.62rem, 14px); margin: 0; color: {theme.ink}; }}
.said {{ font-size: 1rem; line-height: 1.35; margin: 0 0 .5rem; color: {theme.ink}; }}
h1.asked {{ font-size: 1.43rem !important; line-height: 1.22 !important; font-weight: 650 !important; margin: 0 0 .4rem !important;
  padding: 0 !important; color: {theme.ink}; text-wrap: balance; }}
h1.asked.small {{ font-size: 1.05rem !important; font-weight: 400 !important; }}
.options {{ margin: 0 0 .3rem !important; padding-left: 1.4rem !important; font-size: 1rem; line-height: 1.3; color: {theme.ink}; }}
.options li {{ margin: .12rem 0; font-size: 1rem; }} .options li::marker {{ font-weight: 650; }}
.do {{ font-size: .8rem; margin: 0; color: {theme.ink}; font-style: italic; }}
.truth {{ font-size: 1.43rem; font-weight: 650; margin: 0; color: {theme.ink};
  border-left: .3rem solid {theme.primary}; padding-left: .7rem; }}
.advice {{ font-size: 1.2rem; font-weight: 650; margin: .1rem 0 0; color: {theme.ink}; }}
.advice span {{ font-weight: 400; }}
.instance {{ border-collapse: collapse; font-size: .82rem; line-height: 1.2; color: {theme.ink}; margin: 0 !important; }}
.instance th, .instance td {{ border: 0 !important; border-bottom: 1px solid {theme.line} !important; padding: .22rem .5rem !important;
  text-align: left; font-weight: 400; }}
.instance thead th {{ font-weight: 650; }} .instance.square td, .instance.square th {{ text-align: center; min-width: 1.9rem; }}
.word {{ font-size: 2.6rem; font-weight: 650; letter-spacing: .18em; margin: 0; color: {theme.ink}; }}
.st-key-clickers {{ display: none; }}
[data-testid="stExpander"] summary, [data-testid="stExpander"] summary * {{ color: {theme.ink} !important; }}
.st-key-steps button, .st-key-steps [data-testid="stPopoverButton"] {{ border: 2px solid {theme.ink}; background: {theme.page}; }}
.st-key-steps button p, .st-key-steps [data-testid="stPopoverButton"] p {{ font-size: 17px; color: {theme.ink}; }}
.st-key-steps button, .st-key-over button {{ min-height: 44px; padding: 4px 14px; }}
.st-key-over button p {{ font-size: 17px; color: {theme.ink}; }} .st-key-over button {{ border-color: {theme.ink}; }}
.st-key-steps button * {{ color: {theme.ink} !important; opacity: 1 !important; font-size: 17px; white-space: nowrap; }}
.st-key-steps button:disabled {{ border-style: dotted; }}
.st-key-steps button[kind="primary"] {{ background: {theme.ink} !important; }}
.st-key-steps button[kind="primary"] *, .st-key-steps button[kind="primary"] p {{ color: {theme.page} !important; }}
[data-testid="stPopoverBody"] {{ font-size: 16px; }} .st-key-plan_clock {{ width: max-content !important; }}
[data-testid="stPopoverBody"] p, [data-testid="stPopoverBody"] label p, [data-testid="stPopoverBody"] input {{ font-size: 16px; }}
@media (max-width: 640px), (max-height: 500px) {{ .word {{ letter-spacing: .05em; }}
  .st-key-steps {{ position: static !important; flex-wrap: wrap !important; }} }}
</style>"""
