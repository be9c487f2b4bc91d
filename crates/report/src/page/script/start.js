startTheme();
startTips();
startPlots();
startLegends();
startWalks();
startSaving();
